// SPDX-License-Identifier: MIT

extension DeviceSession {
    /// The exclusive sessions that this task is inside of, by session.
    @TaskLocal private static var exclusives: [ObjectIdentifier: UInt64] = [:]

    private var owner: UInt64? { Self.exclusives[ObjectIdentifier(self)] }

    /// Sends a line and gives the lines of the answer, without an echo and without the line that ended it.
    ///
    /// One command at a time is on the channel; others wait for their turn, in the order of the calls.
    ///
    /// - Parameters:
    ///   - line: Without its end, and without any of the characters that end a line.
    ///   - timeout: From the first byte on; by default the configuration's. A call waits `turnTimeout` at most before.
    ///   - log: Whether the command and its answer may be logged.
    /// - Throws: `deviceRefused` at an error line, `timedOut` (both with the `lines` so far), `notReady`, `channelMissing`,
    ///   `disconnected`, `writeFailed`, `busy` (no turn), `exclusiveMisuse`, `invalidArgument`, `limitExceeded`,
    ///   `cancelled`, `tornDown`.
    @discardableResult
    public func run(
        _ line: String,
        timeout: Duration? = nil,
        responseMode: ResponseMode = .automatic,
        log: Bool = true
    ) async throws(DeviceSessionError) -> [String] {
        let work = CommandChannel.Work.command(line, responseMode, timeout: timeout ?? configuration.commandTimeout)
        switch await core.call(work, try bytes(of: line), owner: owner, isLogged: log).outcome {
        case .lines(let lines): return lines
        case .failed(let error): throw error
        case .sent, .granted: return []
        }
    }

    /// Sends a line whose answer, if any, comes as `line` events. Returns as soon as it is on its way.
    ///
    /// - Throws: `busy` while something else is on the channel, and within the quiet window after another `…NoWait`.
    @discardableResult
    public func sendNoWait(_ line: String, log: Bool = true) async throws(DeviceSessionError) -> SendID {
        try await core.sendNoWait(try bytes(of: line), owner: owner, isLogged: log)
    }

    /// Sends bytes, in a frame where the profile has frames. Returns as soon as they are on their way; a `sendFinished`
    /// event follows.
    ///
    /// - Throws: as `sendNoWait`.
    @discardableResult
    public func sendPayloadNoWait(_ payload: [UInt8], log: Bool = true) async throws(DeviceSessionError) -> SendID {
        try await core.sendNoWait(try bytes(of: payload), owner: owner, isLogged: log)
    }

    /// Sends bytes, in a frame where the profile has frames, when it is their turn; returns when the radio has taken all
    /// of them, or the device has acknowledged them where writes have responses. A `sendFinished` event tells the same.
    ///
    /// - Parameter timeout: From the first byte on; by default the configuration's.
    public func sendPayload(
        _ payload: [UInt8],
        timeout: Duration? = nil,
        log: Bool = true
    ) async throws(DeviceSessionError) {
        let work = CommandChannel.Work.payload(timeout: timeout ?? configuration.commandTimeout)
        let outcome = await core.call(work, try bytes(of: payload), owner: owner, isLogged: log).outcome
        if case .failed(let error) = outcome { throw error }
    }

    /// Keeps the channel for the calls inside of `body`, from its beginning to its end.
    ///
    /// The session's own calls inside of `body`, and in tasks begun there, belong to it; all others wait. A link that is
    /// lost ends it: the calls that follow fail with `exclusiveMisuse`, or with what there is instead of a link.
    ///
    /// - Throws: `exclusiveMisuse` inside of another one, or while there is one (or one waits for its turn); `busy` if it
    ///   has no turn in time; what `body` throws.
    public func withExclusiveSession<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Value
    ) async throws -> Value {
        let (id, outcome) = await core.call(.exclusive, [], owner: owner, isLogged: false)
        if case .failed(let error) = outcome { throw error }
        var exclusives = Self.exclusives
        exclusives[ObjectIdentifier(self)] = id
        do {
            let value = try await Self.$exclusives.withValue(exclusives) { try await body() }
            await core.endExclusive(id)
            return value
        } catch {
            await core.endExclusive(id)
            throw error
        }
    }

    // MARK: Bytes

    private func bytes(of line: String) throws(DeviceSessionError) -> [UInt8] {
        guard case .lines(let format, _) = profile.framing else {
            throw DeviceSessionError(
                .invalidArgument, "the profile \(profile.name) does not speak in lines", advice: "Send a payload.")
        }
        guard !line.contains(where: { format.receivedEnds.contains($0) || $0 == "\r\n" || $0.isNewline }) else {
            throw DeviceSessionError(.invalidArgument, "the command has more than one line")
        }
        let bytes = Array((line + format.sentEnd).utf8)
        guard !bytes.isEmpty else { throw DeviceSessionError(.invalidArgument, "there is nothing to send") }
        guard bytes.count <= Limits.commandBytes else {
            throw DeviceSessionError(
                .limitExceeded, "the command is \(bytes.count) bytes, and \(Limits.commandBytes) are the most")
        }
        return bytes
    }

    private func bytes(of payload: [UInt8]) throws(DeviceSessionError) -> [UInt8] {
        guard payload.count <= Limits.payloadBytes else {
            throw DeviceSessionError(
                .limitExceeded, "the payload is \(payload.count) bytes, and \(Limits.payloadBytes) are the most")
        }
        if case .frames(let format) = profile.framing { return try format.frame(payload) }
        guard !payload.isEmpty else { throw DeviceSessionError(.invalidArgument, "there is nothing to send") }
        return payload
    }
}
