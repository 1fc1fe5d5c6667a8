// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct RSSIGateTests {
    private let now = Instant.now

    private func gate(_ threshold: Int? = -60, everyAdvertisement: Bool = true, _ readings: Int?...) -> RSSIGate {
        var gate = RSSIGate(threshold: threshold, reportsEveryAdvertisement: everyAdvertisement)
        for reading in readings { gate.sighted(rssi: reading, at: now) }
        return gate
    }

    @Test func `without a threshold every device is near, whatever its signal`() {
        var silent = gate(nil)
        #expect(silent.isNear(at: now) == true)
        var unavailable = gate(nil, 127)
        #expect(unavailable.isNear(at: now) == true)
    }

    @Test(arguments: [
        ([-60], -60), ([-61, -59], -60), ([-60, -61], -61), ([-90, -50, -55], -55),
        ([-40, -90, -90, -50], -70), ([-40, -41, -90, -91, -92], -90), ([0, 0, -70, -70, -70, -70, -70], -70),
    ])
    func `the median of the latest five readings counts`(_ readings: [Int], _ median: Int) {
        var gate = RSSIGate(threshold: -60)
        for reading in readings { gate.sighted(rssi: reading, at: now) }
        #expect(gate.median(at: now) == median)
    }

    @Test func `one spike makes no device near and one dip none far`() {
        var far = gate(-60, -80, -80, -30)
        #expect(far.isNear(at: now) == false)
        var near = gate(-60, -50, -50, -90)
        #expect(near.isNear(at: now) == true)
    }

    @Test func `a near device stays near down to four decibels below`() {
        var gate = gate(-60, -60)
        #expect(gate.isNear(at: now) == true)
        for _ in 0..<5 { gate.sighted(rssi: -64, at: now) }
        #expect(gate.isNear(at: now) == true)
        for _ in 0..<5 { gate.sighted(rssi: -65, at: now) }
        #expect(gate.isNear(at: now) == false)
        for _ in 0..<5 { gate.sighted(rssi: -61, at: now) }
        #expect(gate.isNear(at: now) == false)
        for _ in 0..<5 { gate.sighted(rssi: -60, at: now) }
        #expect(gate.isNear(at: now) == true)
    }

    @Test(arguments: [127, 1, 20, -128, nil]) func `what is no reading never makes near`(_ reading: Int?) {
        var gate = gate(-100, reading, reading)
        #expect((gate.isNear(at: now) == false) && gate.median(at: now) == nil)
        gate.sighted(rssi: -50, at: now)
        gate.sighted(rssi: reading, at: now)
        #expect(gate.median(at: now) == -50)
    }

    @Test func `a reading counts for three seconds`() {
        var gate = gate(-60, -50)
        #expect(gate.isNear(at: now + .seconds(3)) == true)
        #expect(gate.isNear(at: now + .milliseconds(3_001)) == false)
        gate.sighted(rssi: -70, at: now + .seconds(4))
        #expect(gate.median(at: now + .seconds(4)) == -70)
        // It had gone far: the hysteresis starts anew.
        for _ in 0..<5 { gate.sighted(rssi: -62, at: now + .seconds(5)) }
        #expect(gate.isNear(at: now + .seconds(5)) == false)
    }

    @Test func `where not every advertisement is reported the last reading holds until the device is gone`() {
        var gate = gate(-60, everyAdvertisement: false, -70, -50)
        #expect(gate.median(at: now + .seconds(60)) == -50)
        #expect(gate.isNear(at: now + .seconds(60)) == true)
        gate.gone()
        #expect(gate.isNear(at: now + .seconds(60)) == false)
    }
}
