// SPDX-License-Identifier: MIT

import BluetoothLE

/// Leaves out reports that say nothing new, as a client expects that has not asked for duplicates.
struct DuplicateFilter {
    private struct Told {
        var advertisement: Advertisement
        var time: ContinuousClock.Instant
    }

    private var told: [PeerIdentifier: Told] = [:]

    /// Whether the client is to be told: the device is new, or says something else, or was told of long enough ago.
    mutating func passes(_ discovery: Discovery) -> Bool {
        if let last = told[discovery.peer], last.advertisement == discovery.advertisement,
            last.time.duration(to: discovery.time) < Limits.repetition
        {
            return false
        }
        if told.count >= Limits.knownDevices, told[discovery.peer] == nil,
            let oldest = told.min(by: { $0.value.time < $1.value.time })
        {
            told[oldest.key] = nil
        }
        told[discovery.peer] = Told(advertisement: discovery.advertisement, time: discovery.time)
        return true
    }

    mutating func forget(_ peer: PeerIdentifier) { told[peer] = nil }
}
