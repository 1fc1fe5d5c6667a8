// SPDX-License-Identifier: MIT

/// Judges whether one device is near, by the median of its latest readings, with hysteresis.
///
/// A convenience, not a security boundary: whoever turns the power up is near.
package struct RSSIGate: Sendable, Equatable {
    private struct Reading: Sendable, Equatable {
        let rssi: Int
        let at: Instant
    }

    private let threshold: Int?
    private let reportsEveryAdvertisement: Bool
    private var readings: [Reading] = []
    private var wasNear = false

    /// - Parameters:
    ///   - threshold: dBm from which a device is near; nil: every device is, whatever its signal.
    ///   - reportsEveryAdvertisement: false: readings do not go stale before `gone`, but newer ones replace them.
    package init(threshold: Int?, reportsEveryAdvertisement: Bool = true) {
        self.threshold = threshold
        self.reportsEveryAdvertisement = reportsEveryAdvertisement
    }

    /// - Parameter rssi: dBm; nil, 127 (not available) and positive values say nothing and are not counted.
    package mutating func sighted(rssi: Int?, at now: Instant) {
        guard let rssi, (-127...0).contains(rssi) else { return }
        readings = Array((fresh(at: now) + [Reading(rssi: rssi, at: now)]).suffix(ProtocolLimits.rssiReadings))
    }

    /// The median in dBm, of an even number the lower mean; nil where no reading counts.
    package func median(at now: Instant) -> Int? {
        let sorted = fresh(at: now).map(\.rssi).sorted()
        guard !sorted.isEmpty else { return nil }
        let middle = sorted.count / 2
        if sorted.count.isMultiple(of: 2) {
            return (sorted[middle - 1] + sorted[middle] - 1) / 2
        }
        return sorted[middle]
    }

    /// Near from the threshold up; once near, down to 4 dB below it.
    package mutating func isNear(at now: Instant) -> Bool {
        guard let threshold else { return true }
        guard let median = median(at: now) else {
            wasNear = false
            return false
        }
        wasNear = median >= (wasNear ? threshold - ProtocolLimits.rssiHysteresis : threshold)
        return wasNear
    }

    /// Forgets everything: the device has gone.
    package mutating func gone() {
        readings = []
        wasNear = false
    }

    private func fresh(at now: Instant) -> [Reading] {
        let fresh = readings.filter { now - $0.at <= ProtocolLimits.rssiAge }
        if fresh.isEmpty, !reportsEveryAdvertisement, let last = readings.last { return [last] }
        return fresh
    }
}
