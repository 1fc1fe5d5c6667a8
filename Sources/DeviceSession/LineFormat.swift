// SPDX-License-Identifier: MIT

/// How a device's text is cut into lines, in both directions. Text is UTF-8; what is not is mended.
public struct LineFormat: Sendable, Hashable {
    /// What ends a line that we send.
    public var sentEnd: String
    /// Characters that end a line that we receive, each; empty lines are left out. CR and LF by default, so CR LF too.
    public var receivedEnds: Set<Character>
    /// What a device prints when it waits for a command, without a line's end, such as `>`; `nil`: nothing.
    public var prompt: String?
    /// A line without an end is taken as it is once nothing has come for so long; `nil`: never.
    public var partialLineTimeout: Duration?

    public init(
        sentEnd: String = "\r\n",
        receivedEnds: Set<Character> = ["\r", "\n"],
        prompt: String? = nil,
        partialLineTimeout: Duration? = nil
    ) {
        self.sentEnd = sentEnd
        self.receivedEnds = receivedEnds
        self.prompt = prompt
        self.partialLineTimeout = partialLineTimeout
    }
}

/// Which lines are meant.
public struct LinePattern: Sendable, Hashable, ExpressibleByStringLiteral {
    private enum Rule: Hashable {
        case exactly, beginning
    }

    private let rule: Rule
    public let text: String

    private init(_ rule: Rule, _ text: String) {
        self.rule = rule
        self.text = text
    }

    public init(stringLiteral text: String) { self.init(.exactly, text) }

    /// The whole line.
    public static func exactly(_ text: String) -> Self { Self(.exactly, text) }

    /// What begins with it.
    public static func beginning(_ text: String) -> Self { Self(.beginning, text) }

    func matches(_ line: String) -> Bool {
        switch rule {
        case .exactly: line == text
        case .beginning: line.hasPrefix(text)
        }
    }
}

extension [LinePattern] {
    func match(_ line: String) -> Bool { contains { $0.matches(line) } }
}

/// What belongs to the response to a command, and where it ends.
public struct ResponseRules: Sendable, Hashable {
    /// Whether a device repeats a command before it answers.
    public enum Echo: Sendable, Hashable {
        /// It does not.
        case none
        /// It may: a first line that repeats the command is left out.
        case optional
        /// It does: lines before the repetition do not belong to the response.
        case always
    }

    /// Lines that end a response well; they are left out of it.
    public var finalLines: [LinePattern]
    /// Lines that end a response with `deviceRefused`.
    public var errorLines: [LinePattern]
    /// Lines that a device sends by itself and that belong to no response, whenever they come.
    public var unsolicitedLines: [LinePattern]
    public var echo: Echo
    /// Without `finalLines` and without a prompt a response ends when nothing has come for so long after its last line.
    public var silence: Duration
    /// After a call was given up (cancelled, timed out) the next one waits until nothing has come for so long, or until
    /// a final or an error line: a late answer shall not be taken for the next one's. Three seconds at most.
    public var settlingTime: Duration

    public init(
        finalLines: [LinePattern] = [],
        errorLines: [LinePattern] = [],
        unsolicitedLines: [LinePattern] = [],
        echo: Echo = .optional,
        silence: Duration = .milliseconds(300),
        settlingTime: Duration = .milliseconds(300)
    ) {
        self.finalLines = finalLines
        self.errorLines = errorLines
        self.unsolicitedLines = unsolicitedLines
        self.echo = echo
        self.silence = silence
        self.settlingTime = settlingTime
    }

    /// A response is what comes until the device falls silent.
    public static let untilSilence = ResponseRules()

    /// AT commands: `OK` or an error at the end (ITU-T V.250, 5.7; 3GPP TS 27.007, 9).
    public static let at = ResponseRules(
        finalLines: ["OK"],
        errorLines: ["ERROR", .beginning("ERROR:"), .beginning("+CME ERROR:"), .beginning("+CMS ERROR:")],
        unsolicitedLines: ["RING"],
        echo: .optional
    )

    /// ELM327 and its like: a response ends at the prompt `>` (give the `LineFormat` that prompt).
    public static let elm327 = ResponseRules(
        errorLines: ["?", "STOPPED", "UNABLE TO CONNECT", "CAN ERROR", "BUS ERROR", "BUFFER FULL"],
        echo: .optional
    )

    /// What is wrong with them; `nil`: nothing.
    var flaw: String? {
        for patterns in [finalLines, errorLines, unsolicitedLines] where patterns.count > Limits.patterns {
            return "a list of line patterns has more than \(Limits.patterns)"
        }
        return nil
    }
}

/// When a command's response has ended.
public enum ResponseMode: Sendable, Hashable {
    /// At a final line, an error line or the prompt; without any of them in the rules, when the device falls silent.
    case automatic
    /// When the time is up: all lines that have come by then are the result, final lines and an echo left out. An error
    /// line ends it with `deviceRefused` all the same.
    case collectUntilTimeout
}
