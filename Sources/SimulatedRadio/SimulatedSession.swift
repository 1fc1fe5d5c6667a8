// SPDX-License-Identifier: MIT

package import BluetoothLE

/// Services that a simulated adapter serves.
package final class SimulatedSession: PeripheralSession {
    private let adapter: AdapterHandle
    private let id: SessionID
    package let events: AsyncStream<PeripheralEvent>

    init(adapter: AdapterHandle, id: SessionID, mailbox: Mailbox<PeripheralEvent>) {
        self.adapter = adapter
        self.id = id
        // A reader that gives up is no reason to stop serving: requests beyond the buffer are refused.
        events = mailbox.stream(keeping: nil)
    }

    package func respond(to request: RequestID, with response: RequestResponse) async {
        adapter.core.turn { $0.respond(to: request, of: self.id, with: response) }
    }

    package func notify(
        _ value: [UInt8],
        on characteristic: LocalCharacteristicID,
        to central: PeerIdentifier?
    ) async throws(BluetoothError) {
        try adapter.core.turn { (state) throws(BluetoothError) in
            try state.notify(self.id, value, characteristic, to: central)
        }
    }

    package func disconnect(_ central: PeerIdentifier) async {
        adapter.core.turn { $0.disconnectCentral(central, of: self.adapter.id) }
    }

    package func stop() async {
        adapter.core.turn { $0.stopSession(self.id) }
    }

    // MARK: - What the contract does not show

    /// Who has subscribed, in the order of the links.
    package func subscribers(of characteristic: LocalCharacteristicID) -> [LinkInfo] {
        adapter.core.turn { $0.subscribers(of: characteristic, in: self.id) }
    }

    /// How an unanswered request came; `nil` once it is answered or too old.
    package func details(of request: RequestID) -> RequestDetails? {
        adapter.core.turn { $0.details(of: request) }
    }

    /// The first handle of each service, in their order.
    package var serviceHandles: [UInt16] {
        adapter.core.turn { $0.sessions[self.id]?.services.map(\.handle) ?? [] }
    }
}
