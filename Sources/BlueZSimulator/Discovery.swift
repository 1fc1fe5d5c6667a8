// SPDX-License-Identifier: MIT

internal import DBus

/// The discovery sessions of one adapter, one per D-Bus client, and their filters.
@BlueZSimulatorActor
final class Discovery {
    private struct Client {
        var filter: DiscoveryFilter?
        var isDiscovering: Bool
        /// Its StartDiscovery, until the kernel discovers.
        var start: MethodCall?
    }

    private let adapter: Adapter
    private var clients: [String: Client] = [:]
    /// The StartDiscovery that waits until the kernel discovers.
    private var starting: MethodCall?
    /// Clients whose StartDiscovery was overtaken by another's, and is never answered.
    private var stuck: Set<String> = []
    /// All filters as one, kept because every report is judged by it.
    private(set) var merged = MergedDiscoveryFilter([])

    init(adapter: Adapter) {
        self.adapter = adapter
    }

    /// Until then the kernel still discovers for the daemon before, and this one is refused.
    var heldUpUntil: ContinuousClock.Instant?

    var isActive: Bool { clients.values.contains(where: \.isDiscovering) }

    func setFilter(_ argument: DBusValue, client: String) throws(ErrorReply) {
        guard adapter.isPowered else { throw .notReady }
        let filter = try DiscoveryFilter(parsing: argument, for: adapter.profile)
        if clients[client] == nil {
            guard filter != nil else { return }
            guard clients.count < Limits.discoveryClients else { throw .failed("Too many discovery clients") }
            clients[client] = Client(filter: nil, isDiscovering: false)
        }
        clients[client]?.filter = filter
        if filter == nil, clients[client]?.isDiscovering == false { clients[client] = nil }
        merge()
    }

    func start(_ call: MethodCall) {
        guard adapter.isPowered else { return call.fail(.notReady) }
        if clients[call.sender]?.isDiscovering == true { return call.fail(.busy) }
        if let heldUpUntil, adapter.controller.clock.now < heldUpUntil { return call.fail(.busy) }
        guard clients[call.sender] != nil || clients.count < Limits.discoveryClients else {
            return call.fail(.failed("Too many discovery clients"))
        }
        let wasActive = isActive
        clients[call.sender, default: Client(filter: nil, isDiscovering: false)].isDiscovering = true
        merge()
        if let overtaken = starting {
            // There is one place for who waits (adapter->client in src/adapter.c, start_discovery).
            stuck.insert(overtaken.sender)
            adapter.presence.leaveUnanswered(overtaken)
            starting = call
            return
        }
        if wasActive { return call.reply() }
        starting = call
        let scanning = adapter.controller.startScanning()
        // Strong: the adapter may be pulled out meanwhile.
        Task { [adapter] in
            await scanning.value
            defer { withExtendedLifetime(adapter) {} }
            guard let call = starting else { return }
            starting = nil
            // In this order: start_discovery_complete in src/adapter.c.
            call.reply()
            adapter.adapter1.signal(["Discovering"])
        }
    }

    func stop(_ call: MethodCall) {
        let client = call.sender
        guard adapter.isPowered else { return call.fail(.notReady) }
        guard let session = clients[client], session.isDiscovering else {
            return call.fail(.failed("No discovery started"))
        }
        if starting?.sender == client || stuck.contains(client) { return call.fail(.busy) }
        // The filter outlives the session (discovery_remove in src/adapter.c).
        clients[client] = session.filter == nil ? nil : Client(filter: session.filter, isDiscovering: false)
        // What the end changes is told after the answer: stop_discovery_complete in src/adapter.c.
        call.reply()
        ended()
    }

    func clientGone(_ client: String) {
        stuck.remove(client)
        guard let gone = clients.removeValue(forKey: client) else { return }
        if gone.isDiscovering { ended() } else { merge() }
    }

    /// Power is off, or the adapter is gone: all sessions and filters end.
    func reset() {
        let wasActive = isActive
        clients = [:]
        stuck = []
        if wasActive { ended() }
    }

    private func ended() {
        merge()
        guard !isActive else { return }
        adapter.controller.stopScanning()
        adapter.scanEnded()
        if let starting { starting.fail(.busy) } else { adapter.adapter1.signal(["Discovering"]) }
        starting = nil
    }

    private func merge() {
        merged = MergedDiscoveryFilter(clients.values.filter(\.isDiscovering).map(\.filter))
    }
}
