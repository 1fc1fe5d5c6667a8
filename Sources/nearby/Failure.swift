// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// Why a command ends without its result.
struct Failure: Error, Equatable {
    var exitCode: ExitCode
    /// The code that `--json` prints.
    var code: String
    /// The command whose command line was wrong.
    var command: String?
    /// One sentence without a full stop.
    var message: String
    /// What the user can do; whole sentences.
    var advice: String?
    /// Words for a bug report, printed with `--verbose`.
    var detail: String?
    /// What else `--json` tells.
    var fields = JSONObject()

    init(_ exitCode: ExitCode, code: String, _ message: String, advice: String? = nil, detail: String? = nil) {
        self.exitCode = exitCode
        self.code = code
        self.message = message
        self.advice = advice
        self.detail = detail
    }

    static func usage(_ message: String, advice: String? = nil) -> Failure {
        Failure(.usage, code: "usage", message, advice: advice)
    }

    static func usage(option: String, _ message: String) -> Failure {
        .usage("--\(option): \(message)")
    }

    static func `internal`(_ message: String, detail: String? = nil) -> Failure {
        Failure(.internalFailure, code: "internalFailure", message, detail: detail)
    }

    init(_ error: NearbyError) {
        var message = error.message
        if let cause = error.cause, cause.message != message { message += ": \(cause.message)" }
        self.init(
            ExitCode(error.code),
            code: error.code.description,
            message,
            advice: (error.advice ?? error.cause?.advice).map(Self.inOptions),
            detail: [error.detail, error.cause?.cause].compactMap { $0 }.joined(separator: "; ")
        )
        if let rejection = error.rejection { describe(rejection) }
        if let met = error.encounters {
            fields["seen"] = .int(met.seen)
            fields["tooFar"] = .int(met.tooFar)
            fields["otherApp"] = .int(met.otherApp)
            fields["failed"] = .int(met.failed)
        }
    }

    init(_ error: BluetoothError) {
        self.init(
            ExitCode(error.code),
            code: error.code.description,
            error.subject.map { "\(error.message) (\($0))" } ?? error.message,
            advice: error.advice.map(Self.inOptions),
            detail: error.cause
        )
    }

    /// The framework's advice in the words of a command line.
    private static func inOptions(_ advice: String) -> String {
        let words = [
            ("the same appId", "the same --app-id"), ("a lower minimum RSSI", "a lower --min-rssi"),
            (
                ", or name another bus.",
                ", name another bus with --bus ADDRESS, or try without Bluetooth: `nearby demo`, `nearby simulate`."
            ),
        ]
        return words.reduce(advice) { text, word in text.replacing(word.0, with: word.1) }
    }

    private mutating func describe(_ rejection: NearbyError.Rejection) {
        fields["reason"] = rejection.reason.map { .string($0.rawValue) }
        fields["hostMessage"] = rejection.message.map(JSONValue.string)
        fields["attError"] = rejection.attError.map { .int(Int($0)) }
        fields["security"] = .string(rejection.security.name)
        fields["retryAfter"] = rejection.retryAfter.map { .int(Int($0.components.seconds)) }
    }

    /// The line that `--json` prints.
    var json: JSONObject {
        var object: JSONObject = ["event": "error", "code": .string(code), "message": .string(message)]
        object["exitCode"] = .int(Int(exitCode.rawValue))
        object["advice"] = advice.map(JSONValue.string)
        for (key, value) in fields { object[key] = value }
        return object
    }
}
