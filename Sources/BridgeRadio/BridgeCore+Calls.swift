// SPDX-License-Identifier: MIT

import BluetoothLE

/// A command that waits for its answer.
final class PendingCall: Sendable {
    let command: BridgeCommand
    /// The link that it belongs to.
    let connection: String?
    private let result = Latch<Result<BridgeEvent, BluetoothError>>()

    init(_ command: BridgeCommand) {
        self.command = command
        connection = FailureContext(command).connection
    }

    func finish(_ result: Result<BridgeEvent, BluetoothError>) { self.result.set(result) }

    /// Whoever waits cannot be cancelled: `finish` is called in any case.
    func value() async -> Result<BridgeEvent, BluetoothError> { await result.value() }

    /// Whether an event without an id answers this command, as from bridges that echo none.
    func isAnswered(by event: BridgeEvent) -> Bool {
        switch (command, event) {
        case (.connect(let address, _), .connected(_, let other, _)),
            (.connect(let address, _), .connectionFailed(let other, _)):
            address == other
        case (.discoverServices(let connection, _, _), .servicesDiscovered(let other, _, _)):
            connection == other
        case (.readCharacteristic(let attribute), .characteristicRead(let connection, let characteristic, _)):
            attribute.connection == connection && attribute.characteristic == characteristic
        case (.writeCharacteristic(let attribute, _, true), .writeAcknowledged(let connection, let characteristic)):
            attribute.connection == connection && attribute.characteristic == characteristic
        case (.startScan, .scanFailed):
            true
        default:
            false
        }
    }
}

extension BridgeCommand {
    /// Whether the protocol itself has an answer for it.
    fileprivate var isAnsweredInPlain: Bool {
        switch self {
        case .connect, .discoverServices, .readCharacteristic, .writeCharacteristic(_, _, true): true
        default: false
        }
    }
}

extension BridgeCore {
    /// Sends a command and waits for its answer.
    ///
    /// - Parameters:
    ///   - isCancellable: Whether cancelling the task calls the command off. What a host says last is said in a task
    ///     that has been cancelled.
    ///   - isWanted: Asked as the command is sent: what is said by others is said before or after both.
    /// - Returns: `nil` where the bridge has no answer for such a command, or it is not wanted.
    @discardableResult
    func call(
        _ command: BridgeCommand,
        within limit: Duration = BridgeLimits.answer,
        isCancellable: Bool = true,
        where isWanted: @Sendable () -> Bool = { true }
    ) async throws(BluetoothError) -> BridgeEvent? {
        let wire = try await wire(isCancellable: isCancellable)
        if isCancellable, Task.isCancelled { throw .cancelled }
        guard isWanted() else { return nil }
        let id = String(newNumber())
        guard wire.isExtended || command.isAnsweredInPlain else {
            try send(BridgeRequest(command, id: id), on: wire)
            return nil
        }
        guard pending.count < BridgeLimits.pendingCalls else {
            throw BluetoothError(.limitExceeded, "too many commands wait for the bridge")
        }
        let call = PendingCall(command)
        pending[id] = call
        let deadline = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { self.giveUp(id, .timedOut(command)) }
        }
        defer {
            deadline.cancel()
            pending[id] = nil
        }
        try send(BridgeRequest(command, id: id), on: wire)
        guard isCancellable else { return try await call.value().get() }
        let result = await withTaskCancellationHandler {
            await call.value()
        } onCancel: {
            Task { await self.callOff(id, on: wire) }
        }
        return try result.get()
    }

    func send(_ request: BridgeRequest, on wire: Wire) throws(BluetoothError) {
        guard wire.socket.send(request.line()) else {
            throw BluetoothError(.resetting, "the connection to the bridge is gone")
        }
    }

    /// The bridge ends the work and says so; one that cannot is not waited for.
    private func callOff(_ id: String, on wire: Wire) async {
        guard let call = pending[id] else { return }
        guard wire.isExtended else { return call.finish(.failure(.cancelled)) }
        try? send(BridgeRequest(.cancel(target: id)), on: wire)
        try? await Task.sleep(for: BridgeLimits.cancellation)
        call.finish(.failure(.cancelled))
    }

    private func giveUp(_ id: String, _ error: BluetoothError) {
        pending.removeValue(forKey: id)?.finish(.failure(error))
    }

    /// No other answer comes than one that cannot be read. An event that we do not know need not be the answer.
    func failCall(_ error: BridgeMessageError) {
        guard error.code != .unknown, let id = error.id, let command = pending[id]?.command else { return }
        giveUp(id, .unreadable(command, error))
    }

    /// - Returns: whether it was an answer.
    func finishCall(_ message: BridgeMessage) -> Bool {
        let id: String
        if let echoed = message.id {
            guard pending[echoed] != nil else { return false }
            id = echoed
        } else {
            // The oldest first: their ids are numbers that grow.
            let candidates = pending.filter { $0.value.isAnswered(by: message.event) }.keys
            guard let oldest = candidates.min(by: { (Int($0) ?? 0) < (Int($1) ?? 0) }) else { return false }
            id = oldest
        }
        guard let call = pending.removeValue(forKey: id) else { return false }
        switch message.event {
        case .error(let error, _), .scanFailed(let error), .connectionFailed(_, let error):
            call.finish(.failure(error))
        default:
            call.finish(.success(message.event))
        }
        return true
    }
}

extension BluetoothError {
    fileprivate static func timedOut(_ command: BridgeCommand) -> BluetoothError {
        BluetoothError(.timedOut, "the bridge has not answered “\(command.name)”")
    }

    fileprivate static func unreadable(_ command: BridgeCommand, _ error: BridgeMessageError) -> BluetoothError {
        BluetoothError(
            .internalFailure, "the bridge's answer to “\(command.name)” cannot be read",
            advice: "Does the bridge keep to the protocol's limits?", cause: error.message)
    }
}
