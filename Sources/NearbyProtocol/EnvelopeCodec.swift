// SPDX-License-Identifier: MIT

extension Envelope {
    /// Who reads a message: a host takes only join requests, a client only handoffs and rejects.
    public enum Reader: String, Hashable, Sendable {
        case host
        case client
    }

    /// The message as it goes over the air: keys in the protocol's order, no white space, absent rather than null.
    public func encoded() -> [UInt8] {
        var object = JSONObject()
        object["type"] = .string(type.rawValue)
        object["protocolVersion"] = .int(protocolVersion)
        object["appId"] = .string(appId)
        if let sessionId { object["sessionId"] = .string(sessionId) }
        if let payload { object["payload"] = .object(payload) }
        return object.encoded()
    }

    /// Reads a message in the protocol's order: size, parse, version, type, appId, the other fields.
    ///
    /// - Parameters:
    ///   - bytes: the message, trailing NULs and white space allowed.
    ///   - reader: who reads it.
    ///   - limit: the largest message in bytes, before anything is stripped.
    /// - Throws: `EnvelopeError`; its `appId` is set where the message's could be read.
    public static func decode(
        _ bytes: [UInt8], as reader: Reader, limit: Int = ProtocolLimits.envelopeBytes
    ) throws(EnvelopeError) -> Envelope {
        guard bytes.count <= limit else { throw .tooLarge(size: bytes.count, limit: limit) }
        let object: JSONObject
        do throws(JSONError) {
            object = try JSONObject(parsing: stripped(bytes))
        } catch {
            throw EnvelopeError(code: .malformed, message: "Not a JSON object: \(error)")
        }
        return try Fields(object: object, reader: reader).envelope()
    }

    /// Whether bytes could be the start of a message that goes on: so long writes and split answers are told from
    /// broken ones.
    static func isPrefix(_ bytes: [UInt8]) -> Bool {
        guard bytes.first(where: { !JSONReader.isWhiteSpace($0) }) == UInt8(ascii: "{") else { return false }
        do throws(JSONError) {
            _ = try JSONReader.read(bytes)
            return false
        } catch {
            return error.code == .unexpectedEnd
        }
    }

    /// Some stacks pad writes with NULs, some apps end them with a line feed.
    static func stripped(_ bytes: [UInt8]) -> [UInt8] {
        guard let last = bytes.lastIndex(where: { $0 != 0 && !JSONReader.isWhiteSpace($0) }) else { return [] }
        return last == bytes.count - 1 ? bytes : Array(bytes[...last])
    }
}

/// The fields of a message that parsed, judged one after the other.
private struct Fields {
    let object: JSONObject
    let reader: Envelope.Reader
    /// For the reject, whatever else is wrong.
    let readableAppId: String?

    init(object: JSONObject, reader: Envelope.Reader) {
        self.object = object
        self.reader = reader
        readableAppId = object.string("appId").flatMap { $0.isEmpty ? nil : $0 }
    }

    func envelope() throws(EnvelopeError) -> Envelope {
        try checkVersion()
        let type = try kind()
        guard let appId = readableAppId else { throw malformed("appId must be a non-empty string.") }
        let sessionId = try sessionId(of: type)
        let payload = try payload(of: type)
        return Envelope(type: type, appId: appId, sessionId: sessionId, payload: payload)
    }

    private func checkVersion() throws(EnvelopeError) {
        guard case .number(let version)? = object.present("protocolVersion") else {
            throw malformed("protocolVersion must be an integer.")
        }
        switch version.integer {
        case .integer(ProtocolLimits.protocolVersion): return
        case .fraction: throw malformed("protocolVersion must be an integer.")
        case .integer, .tooLarge:
            throw EnvelopeError(
                code: .unsupportedVersion,
                message: "Only protocol version \(ProtocolLimits.protocolVersion) is spoken here.",
                appId: readableAppId)
        }
    }

    private func kind() throws(EnvelopeError) -> Envelope.Kind {
        guard let name = object.string("type") else { throw malformed("type must be a string.") }
        guard let kind = Envelope.Kind.allCases.first(where: { name.hasSameBytes(as: $0.rawValue) }),
            (kind == .joinRequest) == (reader == .host)
        else {
            throw EnvelopeError(
                code: .wrongType, message: "This type of message does not belong here.", appId: readableAppId)
        }
        return kind
    }

    private func sessionId(of type: Envelope.Kind) throws(EnvelopeError) -> String? {
        guard let value = object.present("sessionId") else {
            if type == .handoff { throw malformed("A handoff must have a sessionId.") }
            return nil
        }
        guard let text = value.string else { throw malformed("sessionId must be a string.") }
        return text
    }

    private func payload(of type: Envelope.Kind) throws(EnvelopeError) -> JSONObject? {
        guard let value = object.present("payload") else {
            if type != .joinRequest { throw malformed("A \(type.rawValue) must have a payload.") }
            return nil
        }
        guard let payload = value.object else { throw malformed("payload must be an object.") }
        if type == .reject {
            guard payload.string("reason") != nil, payload.string("message") != nil else {
                throw malformed("A reject's payload must have a reason and a message, both strings.")
            }
        }
        return payload
    }

    private func malformed(_ message: String) -> EnvelopeError {
        EnvelopeError(code: .malformed, message: message, appId: readableAppId)
    }
}
