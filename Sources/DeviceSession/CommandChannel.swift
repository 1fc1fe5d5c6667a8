// SPDX-License-Identifier: MIT

/// Whose turn it is on a device's channel, and what belongs to whom: a state machine without any I/O.
///
/// One message at a time is on the channel, from its first byte to the end of its answer. Everything else waits in the
/// order of the calls, except that nobody but the exclusive session's own calls have a turn while there is one.
struct CommandChannel {
    /// What is on the channel.
    private struct Active {
        let entry: Entry
        /// `nil`: the caller's patience has no end.
        var deadline: ContinuousClock.Instant?
        var lines: [String] = []
        var bytes = 0
        var lastLine: ContinuousClock.Instant?
        var hasEcho = false
        /// The radio has taken all bytes, or has failed to.
        var isWritten = false
        /// The caller has its result.
        var isFinished = false
        /// The device may still answer, and nobody waits for it.
        var isAbandoned = false
    }

    private enum Phase {
        /// No channel: what calls end with.
        case closed(DeviceSessionError)
        case free
        case active(Active)
        /// The answer to a call that was given up may still come.
        case settling(quietSince: ContinuousClock.Instant, began: ContinuousClock.Instant, isLogged: Bool)
    }

    private struct Waiting {
        let entry: Entry
        let deadline: ContinuousClock.Instant
    }

    private let rules: ResponseRules
    private let hasPrompt: Bool
    private let quietWindow: Duration
    private let turnTimeout: Duration
    private var phase: Phase
    private var waiting: [Waiting] = []
    private(set) var exclusive: ID?
    private var lastNoWait: ContinuousClock.Instant?

    init(_ rules: ResponseRules, hasPrompt: Bool, quietWindow: Duration, turnTimeout: Duration) {
        self.rules = rules
        self.hasPrompt = hasPrompt
        self.quietWindow = quietWindow.bounded
        self.turnTimeout = turnTimeout.bounded
        phase = .closed(.notConnected)
    }

    // MARK: The channel's life

    mutating func open(at now: ContinuousClock.Instant) -> [Action] {
        phase = .free
        lastNoWait = nil
        return next(at: now)
    }

    /// Ends every call with this error, and later ones, too, until `open`.
    mutating func close(_ error: DeviceSessionError) -> [Action] {
        var actions: [Action] = []
        if case .active(let active) = phase, !active.isFinished {
            var error = error
            error.lines = active.lines
            actions.append(.finish(active.entry.id, .failed(error)))
        }
        actions += waiting.map { .finish($0.entry.id, .failed(error)) }
        waiting = []
        exclusive = nil
        phase = .closed(error)
        return actions
    }

    // MARK: Calls

    mutating func submit(_ entry: Entry, at now: ContinuousClock.Instant) throws(DeviceSessionError) -> [Action] {
        try check(entry)
        guard waiting.count < Limits.waitingCalls else {
            throw DeviceSessionError(.limitExceeded, "\(Limits.waitingCalls) calls wait for the channel already")
        }
        waiting.append(Waiting(entry: entry, deadline: now + turnTimeout))
        return next(at: now)
    }

    /// Sends at once, or not at all; the caller waits for nothing.
    mutating func submitNoWait(_ entry: Entry, at now: ContinuousClock.Instant) throws(DeviceSessionError) -> [Action] {
        try check(entry)
        guard case .free = phase, exclusive == entry.owner, !waiting.contains(where: { $0.entry.owner == entry.owner })
        else { throw DeviceSessionError(.busy, "something else is on the channel") }
        if let lastNoWait, now < lastNoWait + quietWindow {
            throw DeviceSessionError(
                .busy,
                "the message before was sent less than \(quietWindow) ago",
                advice: "Wait a little, or use the call that waits for its turn."
            )
        }
        lastNoWait = now
        var active = Active(entry: entry)
        active.isFinished = true
        phase = .active(active)
        return [.write(entry)]
    }

    private func check(_ entry: Entry) throws(DeviceSessionError) {
        if case .closed(let error) = phase { throw error }
        if let owner = entry.owner, owner != exclusive {
            throw DeviceSessionError(
                .exclusiveMisuse,
                "the exclusive session that this call belongs to has ended",
                advice: "Let no task outlive the closure of withExclusiveSession."
            )
        }
        guard entry.work == .exclusive else { return }
        guard entry.owner == nil, exclusive == nil, !waiting.contains(where: { $0.entry.work == .exclusive }) else {
            throw DeviceSessionError(
                .exclusiveMisuse,
                entry.owner == nil
                    ? "there is an exclusive session already" : "an exclusive session cannot be inside another",
                advice: "End the one before you begin the next."
            )
        }
    }

    mutating func endExclusive(_ id: ID, at now: ContinuousClock.Instant) -> [Action] {
        guard exclusive == id else { return [] }
        exclusive = nil
        // Calls of its tasks that nobody has waited for.
        let left = waiting.filter { $0.entry.owner == id }
        waiting.removeAll { $0.entry.owner == id }
        let error = DeviceSessionError(.exclusiveMisuse, "the exclusive session ended before the call had its turn")
        return left.map { .finish($0.entry.id, .failed(error)) } + next(at: now)
    }

    mutating func cancel(_ id: ID, at now: ContinuousClock.Instant) -> [Action] {
        if let index = waiting.firstIndex(where: { $0.entry.id == id }) {
            waiting.remove(at: index)
            return [.finish(id, .failed(.cancelled))] + next(at: now)
        }
        return give(up: id, .cancelled, at: now)
    }

    // MARK: What the device and the radio do

    mutating func wrote(_ id: ID, _ error: DeviceSessionError?, at now: ContinuousClock.Instant) -> [Action] {
        guard case .active(var active) = phase, active.entry.id == id else { return [] }
        active.isWritten = true
        var actions: [Action] = []
        if !active.isFinished {
            if let error {
                active.isFinished = true
                // Some of it may have arrived.
                active.isAbandoned = active.entry.isCommand
                actions.append(.finish(id, .failed(error)))
            } else if !active.entry.isCommand {
                active.isFinished = true
                actions.append(.finish(id, .sent))
            }
        }
        phase = .active(active)
        return actions + proceed(at: now)
    }

    mutating func received(_ token: LineAssembly.Token, at now: ContinuousClock.Instant) -> [Action] {
        switch token {
        case .prompt: return ended(at: now)
        case .line(let line): return received(line, at: now)
        }
    }

    private mutating func received(_ line: String, at now: ContinuousClock.Instant) -> [Action] {
        let told = { (isResponse: Bool, isLogged: Bool) in
            [Action.line(DeviceLine(line, isResponse: isResponse), isLogged: isLogged)]
        }
        if rules.unsolicitedLines.match(line) { return told(false, true) }
        let isFinal = rules.finalLines.match(line)
        let isError = rules.errorLines.match(line)
        switch phase {
        case .settling(_, let began, let isLogged):
            phase = .settling(quietSince: now, began: began, isLogged: isLogged)
            return told(false, isLogged) + (isFinal || isError ? ended(at: now) : [])
        case .active(var active) where active.entry.isCommand:
            guard !active.isFinished else {
                return told(false, active.entry.isLogged) + (isFinal || isError ? ended(at: now) : [])
            }
            if rules.echo != .none, !active.hasEcho, active.lines.isEmpty, line == active.entry.echo {
                active.hasEcho = true
                phase = .active(active)
                return told(true, active.entry.isLogged)
            }
            if rules.echo == .always, !active.hasEcho { return told(false, true) }
            let event = told(true, active.entry.isLogged)
            if isError { return event + refused(&active, line, at: now) }
            if isFinal { return event + ended(at: now) }
            active.lines.append(line)
            active.bytes += line.utf8.count
            active.lastLine = now
            phase = .active(active)
            guard active.lines.count < Limits.responseLines, active.bytes <= Limits.responseBytes else {
                let text = "the response is longer than \(Limits.responseLines) lines or \(Limits.responseBytes) bytes"
                return event + give(up: active.entry.id, DeviceSessionError(.limitExceeded, text), at: now)
            }
            return event
        default:
            return told(false, true)
        }
    }

    private mutating func refused(
        _ active: inout Active,
        _ line: String,
        at now: ContinuousClock.Instant
    ) -> [Action] {
        active.isFinished = true
        phase = .active(active)
        var error = DeviceSessionError(.deviceRefused, "the device answered with an error")
        error.lines = active.lines + [line]
        return [.finish(active.entry.id, .failed(error))] + proceed(at: now)
    }

    /// A final line, or the prompt: whatever was going on is over.
    private mutating func ended(at now: ContinuousClock.Instant) -> [Action] {
        switch phase {
        case .settling:
            phase = .free
            return next(at: now)
        case .active(var active) where active.entry.isCommand:
            if active.isFinished {
                active.isAbandoned = false
                phase = .active(active)
                return proceed(at: now)
            }
            guard case .command(_, .automatic, _) = active.entry.work else { return [] }
            active.isFinished = true
            phase = .active(active)
            return [.finish(active.entry.id, .lines(active.lines))] + proceed(at: now)
        default:
            return []
        }
    }

    // MARK: Time

    var deadline: ContinuousClock.Instant? {
        var deadlines = waiting.map(\.deadline)
        switch phase {
        case .active(let active):
            if let deadline = active.deadline, !active.isFinished { deadlines.append(deadline) }
            if let silence = silence(of: active) { deadlines.append(silence) }
        case .settling(let quietSince, let began, _):
            deadlines.append(min(quietSince + rules.settlingTime.bounded, began + Limits.drain))
        case .free, .closed:
            break
        }
        return deadlines.min()
    }

    /// When a response is over that nothing but silence ends.
    private func silence(of active: Active) -> ContinuousClock.Instant? {
        guard !active.isFinished, rules.finalLines.isEmpty, !hasPrompt,
            case .command(_, .automatic, _) = active.entry.work, let lastLine = active.lastLine
        else { return nil }
        return lastLine + rules.silence.bounded
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        switch phase {
        case .settling(let quietSince, let began, _):
            if now >= min(quietSince + rules.settlingTime.bounded, began + Limits.drain) {
                phase = .free
                actions += next(at: now)
            }
        case .active(var active):
            if let silence = silence(of: active), silence <= now {
                active.isFinished = true
                phase = .active(active)
                actions += [.finish(active.entry.id, .lines(active.lines))] + proceed(at: now)
            } else if let deadline = active.deadline, deadline <= now, !active.isFinished {
                actions += timedOut(active, at: now)
            }
        case .free, .closed:
            break
        }
        for late in waiting where late.deadline <= now {
            let error = DeviceSessionError(
                .busy,
                "the channel was not free within \(turnTimeout)",
                advice: "Inside withExclusiveSession wait for no call that does not belong to it."
            )
            actions.append(.finish(late.entry.id, .failed(error)))
        }
        waiting.removeAll { $0.deadline <= now }
        return actions
    }

    private mutating func timedOut(_ active: Active, at now: ContinuousClock.Instant) -> [Action] {
        if case .command(_, .collectUntilTimeout, _) = active.entry.work {
            var active = active
            active.isFinished = true
            phase = .active(active)
            return [.finish(active.entry.id, .lines(active.lines))] + proceed(at: now)
        }
        let what = active.isWritten ? "the device did not answer in time" : "the message could not be sent in time"
        return give(up: active.entry.id, DeviceSessionError(.timedOut, what), at: now)
    }

    // MARK: Turns

    /// The caller gets this error; the channel waits until the device has had its say.
    private mutating func give(
        up id: ID,
        _ error: DeviceSessionError,
        at now: ContinuousClock.Instant
    ) -> [Action] {
        guard case .active(var active) = phase, active.entry.id == id, !active.isFinished else { return [] }
        active.isFinished = true
        active.isAbandoned = active.entry.isCommand
        phase = .active(active)
        var error = error
        error.lines = active.lines
        return [.finish(id, .failed(error))] + proceed(at: now)
    }

    /// Frees the channel if nothing is left to be done for what is on it.
    private mutating func proceed(at now: ContinuousClock.Instant) -> [Action] {
        guard case .active(let active) = phase, active.isFinished, active.isWritten else { return [] }
        if active.isAbandoned {
            phase = .settling(quietSince: now, began: now, isLogged: active.entry.isLogged)
            return []
        }
        phase = .free
        return next(at: now)
    }

    private mutating func next(at now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        while case .free = phase, let index = waiting.firstIndex(where: { $0.entry.owner == exclusive }) {
            let entry = waiting.remove(at: index).entry
            switch entry.work {
            case .exclusive:
                exclusive = entry.id
                actions.append(.finish(entry.id, .granted))
            case .command(_, _, let timeout), .payload(let timeout):
                phase = .active(Active(entry: entry, deadline: now + timeout.bounded))
                actions.append(.write(entry))
            }
        }
        return actions
    }
}
