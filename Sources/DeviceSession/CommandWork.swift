// SPDX-License-Identifier: MIT

/// What goes into the channel, and what comes out.
extension CommandChannel {
    typealias ID = UInt64

    enum Work: Equatable {
        /// Wants an answer.
        case command(String, ResponseMode, timeout: Duration)
        /// Wants to be sent.
        case payload(timeout: Duration)
        /// Wants the channel for itself.
        case exclusive
    }

    struct Entry: Equatable {
        let id: ID
        let work: Work
        /// The bytes to send.
        let bytes: [UInt8]
        /// The exclusive session that it belongs to.
        var owner: ID?
        var isLogged = true
    }

    enum Outcome: Equatable {
        case lines([String])
        case sent
        case granted
        case failed(DeviceSessionError)
    }

    enum Action: Equatable {
        case write(Entry)
        /// The caller has its result.
        case finish(ID, Outcome)
        case line(DeviceLine, isLogged: Bool)
    }
}

extension CommandChannel.Entry {
    var isCommand: Bool {
        if case .command = work { true } else { false }
    }

    /// What a device repeats.
    var echo: String? {
        if case .command(let line, _, _) = work { line } else { nil }
    }
}
