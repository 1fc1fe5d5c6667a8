// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyDiscoveryKit

@Suite struct RandomUUIDTests {
    @Test(
        arguments: [
            (0, 0, "00000000-0000-4000-8000-000000000000"),
            (UInt64.max, UInt64.max, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef, "01234567-89ab-4def-8123-456789abcdef"),
        ] as [(UInt64, UInt64, String)])
    func versionAndVariantStandWhereTheRFCHasThem(high: UInt64, low: UInt64, text: String) {
        #expect(RandomUUID.text(high: high, low: low) == text)
    }

    @Test func twoAreNotEqual() {
        #expect(RandomUUID.make() != RandomUUID.make())
    }
}
