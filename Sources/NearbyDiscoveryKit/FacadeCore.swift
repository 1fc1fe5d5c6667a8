// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// What outlives the facade object until its radio work has ended: one activity at a time, events in order.
final class FacadeCore: Sendable {
    typealias Event = NearbyDiscoveryClient.Event
    typealias State = NearbyDiscoveryClient.State

    private struct Storage {
        var handler: (@Sendable (Event) -> Void)?
        var state = State.idle
        var activity: Task<Void, Never>?
        var isShutDown = false
        /// Whether the radio that was used last is a bridge.
        var usesBridge = false
    }

    private let storage: Locked<Storage>
    private let radio: (any Radio)?
    private let events: AsyncStream<Event>.Continuation

    init(radio: (any Radio)?) {
        self.radio = radio
        var first = Storage()
        first.usesBridge = radio is BridgeRadio
        let storage = Locked(first)
        self.storage = storage
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingNewest(Limits.events)
        )
        events = continuation
        Task {
            for await event in stream {
                storage.withLock { $0.handler }?(event)
            }
        }
    }

    deinit { events.finish() }

    var handler: (@Sendable (Event) -> Void)? {
        get { storage.withLock { $0.handler } }
        set { storage.withLock { $0.handler = newValue } }
    }

    func report(_ event: Event) { events.yield(event) }

    func change(to state: State) {
        let changed = storage.withLock { storage in
            defer { storage.state = state }
            return storage.state != state
        }
        if changed { events.yield(.stateChanged(state)) }
    }

    func stop() { storage.withLock { $0.activity }?.cancel() }

    func shutDown() {
        let activity = storage.withLock { storage in
            storage.isShutDown = true
            return storage.activity
        }
        activity?.cancel()
    }

    /// Ends the activity before, radio work included, and then begins this one.
    func start(_ body: @escaping @Sendable (FacadeCore, any Radio) async throws(NearbyError) -> Void) {
        storage.withLock { storage in
            guard !storage.isShutDown else { return }
            let previous = storage.activity
            previous?.cancel()
            storage.activity = Task { [self] in
                await previous?.value
                guard !Task.isCancelled else { return }
                do throws(NearbyError) {
                    try await body(self, try await usableRadio())
                } catch {
                    if error.code != .cancelled { report(.error(radio == nil ? error.namingBridges() : error)) }
                }
                change(to: .idle)
            }
        }
    }

    var usesBridge: Bool { storage.withLock { $0.usesBridge } }

    private func usableRadio() async throws(NearbyError) -> any Radio {
        if let radio { return radio }
        let chosen = try await DefaultRadio.choose()
        storage.withLock { $0.usesBridge = chosen is BridgeRadio }
        return chosen
    }

    /// What a role comes to; every event of it has been told by then.
    static func outcome<RoleEvent: Sendable, Value>(
        _ events: AsyncStream<RoleEvent>,
        tell: @escaping @Sendable (RoleEvent) -> Void,
        of role: () async throws(NearbyError) -> Value
    ) async -> Result<Value, NearbyError> {
        let telling = Task {
            for await event in events { tell(event) }
        }
        let result: Result<Value, NearbyError>
        do throws(NearbyError) { result = .success(try await role()) } catch { result = .failure(error) }
        await telling.value
        return result
    }
}
