// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

extension ClientSession {
    /// Does a command in its lane; the body's error is told.
    ///
    /// - Returns: whether it is in line. What is kept for it until `forget` is kept only then.
    @discardableResult
    func enqueue(
        _ request: BridgeRequest,
        in lane: Lane,
        as operation: Operation = Operation(),
        _ body: @escaping @Sendable (isolated ClientSession) async throws(BluetoothError) -> Void
    ) -> Bool {
        if let id = request.id { operations[id] = operation }
        let isQueued = lane.enqueue { [weak self] in
            await operation.run { [weak self] in await self?.run(request, operation, body) }
        }
        if !isQueued {
            forget(request, operation)
            fail(request, .tooMany("commands wait"))
        }
        return isQueued
    }

    func run(
        _ request: BridgeRequest,
        _ operation: Operation,
        _ body: @Sendable (isolated ClientSession) async throws(BluetoothError) -> Void
    ) async {
        do throws(BluetoothError) {
            if Task.isCancelled { throw .cancelled }
            try await body(self)
        } catch {
            if !isEnding { fail(request, error) }
        }
        forget(request, operation)
    }

    /// Nothing that a client has named outlives the command.
    private func forget(_ request: BridgeRequest, _ operation: Operation) {
        if let id = request.id, operations[id] === operation { operations[id] = nil }
        switch request.command {
        case .advertise(let offer):
            if serveOperations[offer.session] === operation { serveOperations[offer.session] = nil }
        case .setNotify(let attribute, _):
            links[attribute.connection]?.withdraw(operation, ClientLink.Key(attribute))
        default:
            break
        }
    }
}
