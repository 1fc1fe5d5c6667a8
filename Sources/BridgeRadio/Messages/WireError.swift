// SPDX-License-Identifier: MIT

package import BluetoothLE
import JSON

/// A radio's error as the bridge protocol carries it: `error` has the text; `code`, `advice` and `attError` are ours.
extension BluetoothError {
    private static let codes: [String: Code] = {
        let all: [Code] = [
            .adapterNotFound, .poweredOff, .unauthorized, .serviceUnavailable, .resetting, .peerNotFound,
            .connectionFailed, .notConnected, .disconnected, .attributeNotFound, .attributeError, .notSupported,
            .invalidArgument, .busy, .advertisingFailed, .limitExceeded, .timedOut, .cancelled, .internalFailure,
        ]
        return Dictionary(uniqueKeysWithValues: all.map { ($0.description, $0) })
    }()

    func put(into object: inout JSONObject, as key: String = "error") {
        object.put(key, message)
        object.put("code", code.description)
        object.put("advice", advice)
        object.put("subject", subject)
        object.put("cause", cause)
        object.put("attError", att.map { Int($0.rawValue) })
    }

    /// - Parameter fallback: What it is where the bridge gives no code, as a Mac's does not.
    init?(_ fields: MessageFields, as key: String = "error", fallback: Code) throws(BridgeMessageError) {
        guard let message = try fields.optionalText(key, BridgeLimits.errorBytes) else { return nil }
        let code = try fields.optionalText("code").flatMap { Self.codes[$0] } ?? fallback
        self.init(
            code,
            message,
            advice: try fields.optionalText("advice", BridgeLimits.errorBytes),
            subject: try fields.optionalText("subject", BridgeLimits.errorBytes),
            att: try fields.optionalInteger("attError", 0...255).map { ATTError(rawValue: UInt8($0)) },
            cause: try fields.optionalText("cause", BridgeLimits.errorBytes)
        )
    }

    /// A line that was no message, in the vocabulary of errors.
    package init(_ error: BridgeMessageError) {
        self.init(.invalidArgument, error.message)
    }
}
