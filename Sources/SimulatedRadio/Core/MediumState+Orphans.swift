// SPDX-License-Identifier: MIT

import BluetoothLE

// What the kernel goes on with when the daemon that used an adapter is killed. Seen on BlueZ 5.55 to 5.87, kernel 6.12:
// docs/bluez.md.
extension MediumState {
    /// The daemon is gone without a goodbye: nobody scans, connects or answers any more. Advertisements stay on the
    /// air, and links up for a while.
    mutating func abandon(_ id: AdapterID) {
        guard adapters[id]?.isAbandoned == false else { return }
        adapters[id]?.isAbandoned = true
        for scan in adapters[id]?.scans.keys.sorted() ?? [] { stopScan(id, scan) }
        failConnects(of: id, .daemonGone)
        for link in linkIDs(of: id) { orphan(link, at: id) }
        for session in sessionIDs(of: id) {
            guard let record = sessions[session] else { continue }
            if record.request == nil { stopSession(session) } else { finish(record.mailbox) }
        }
        forgetPeers(of: id)
        refresh()
    }

    /// Another daemon takes the adapter: it clears what is advertised, and finds the links that are up.
    mutating func adopt(_ id: AdapterID) {
        guard adapters[id]?.isAbandoned == true else { return }
        adapters[id]?.isAbandoned = false
        for session in sessionIDs(of: id) { stopSession(session) }
        refresh()
    }

    /// Nobody reads this end's ATT channel any more: what arrives is lost, and the kernel ends the link.
    mutating func orphan(_ id: LinkID, at end: AdapterID) {
        guard let link = links[id], link.farewells[end] == nil else { return }
        let isCentral = end == link.central
        if isCentral {
            for transaction in link.transactions where !transaction.isCancelled { fail(transaction, .daemonGone) }
            links[id]?.transactions = []
            endReading(link, .daemonGone)
        } else {
            for (request, record) in requests where record.link == id { dropRequest(request) }
        }
        // hci_conn_drop in the kernel's hci_core.h: twice as long for a link that came in.
        let delay = isCentral ? Limits.idleLink : Limits.idleLink * 2
        let farewell = schedule(after: delay) { state in
            state.takeDown(id, central: isCentral ? .local : .remote, peripheral: isCentral ? .remote : .local)
        }
        links[id]?.farewells[end] = farewell
    }
}

extension BluetoothError {
    static let daemonGone = BluetoothError(.resetting, "the Bluetooth service went away")
}
