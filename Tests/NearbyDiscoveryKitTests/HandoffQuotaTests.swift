// SPDX-License-Identifier: MIT

import NearbyProtocol
import Testing

@testable import NearbyDiscoveryKit

@Suite struct HandoffQuotaTests {
    private let delivery = Delivery(.disconnected, subscriptionSeen: true)

    @Test func withoutALimitEverybodyIsAdmitted() {
        var quota = HandoffQuota(limit: nil)
        for id in 1...1_000 {
            #expect(quota.admits(JoinID(UInt64(id))) == true)
            quota.observe(.delivered(JoinID(UInt64(id)), "peer", delivery))
        }
        #expect(!quota.isUsedUp)
    }

    @Test func theLastHandoffIsNotPromisedTwice() {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        #expect(quota.admits(2) == false)
        quota.observe(.delivered(1, "peer", delivery))
        #expect(quota.isUsedUp)
    }

    /// Who is turned away since the app is busy may leave before that is told.
    @Test func whoIsTurnedAwayTakesNoPlace() {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1, besides: Limits.admissions) == false)
        #expect(quota.admits(2, besides: Limits.admissions - 1) == true)
    }

    @Test(arguments: [
        NearbyProtocol.HostEvent.failed(1, "peer", .disconnected),
        .rejected(1, "peer", .tooLarge, message: ""),
    ])
    func aJoinThatFailsGivesItsPlaceBack(event: NearbyProtocol.HostEvent) {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        quota.observe(event)
        #expect(quota.admits(2) == true)
        #expect(!quota.isUsedUp)
    }

    @Test func aRejectByTheAppGivesThePlaceBack() {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        #expect(quota.decide(1, .reject(.denied, message: "no")) == .reject(.denied, message: "no"))
        #expect(quota.admits(2) == true)
    }

    @Test func failuresWithoutAJoinCountForNothing() {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        quota.observe(.failed(nil, "other", .tooManyPeers))
        #expect(quota.admits(2) == false)
    }

    @Test func extendedJoinsCountAgainstTheSameLimit() {
        var quota = HandoffQuota(limit: 2)
        let extended = JoinID(1 << 63 + 1)
        #expect(quota.admits(1) == true)
        #expect(quota.admits(extended) == true)
        #expect(quota.admits(2) == false)
        quota.observe(ExtendedHostEvent.delivered(extended, "peer"))
        quota.observe(.delivered(1, "peer", delivery))
        #expect(quota.isUsedUp)
    }

    @Test(arguments: [
        ExtendedHostEvent.failed(1, "peer", .disconnected),
        .rejected(1, "peer", .tooLarge, message: "", sealed: true),
    ])
    func anExtendedJoinThatFailsGivesItsPlaceBackAndTakesItAgain(event: ExtendedHostEvent) {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        quota.observe(event)
        quota.observe(ExtendedHostEvent.joined(1, "peer"))
        #expect(quota.admits(2) == false)
    }

    @Test func whoComesBackFindsItsPlaceTakenOrFree() {
        var quota = HandoffQuota(limit: 1)
        #expect(quota.admits(1) == true)
        #expect(quota.mayRepeat(1))
        quota.observe(ExtendedHostEvent.failed(1, "peer", .disconnected))
        #expect(quota.mayRepeat(1))
        #expect(quota.admits(2) == true)
        #expect(!quota.mayRepeat(1))
        quota.observe(ExtendedHostEvent.failed(2, "other", .disconnected))
        #expect(quota.mayRepeat(1))
        #expect(HandoffQuota(limit: nil).mayRepeat(1))
    }

    @Test func whatWasDeliveredBeforeTakesNoPlace() {
        var quota = HandoffQuota(limit: 2)
        #expect(quota.admits(1) == true)
        quota.observe(ExtendedHostEvent.delivered(1, "peer"))
        quota.observe(ExtendedHostEvent.repeated(1, "peer"))
        #expect(quota.admits(2) == true)
    }
}
