// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import BridgeRadio

/// The bridge's adapter, as it is told of here.
@Suite(.timeLimit(.minutes(1))) struct AdapterTests {
    /// The user may have an adapter that is on, at this machine.
    @Test(arguments: [
        (AdapterState.poweredOff, BluetoothError.Code.poweredOff), (.unsupported, .adapterNotFound),
        (.unauthorized, .unauthorized), (.resetting, .resetting),
    ])
    func whereABridgeGivesNoReasonItIsSaidWhoseAdapterItIs(
        state: AdapterState, code: BluetoothError.Code
    ) async throws {
        let fake = try FakeBridge()
        let core = fake.core
        await core.note(AdapterStatus(state))
        let status = await core.status
        #expect(status.reason?.code == code)
        #expect(status.message.contains("the bridge"))
        #expect(status.advice == state.advice)
        await core.shutDown()
    }

    @Test func aReasonThatTheBridgeGivesIsPassedOn() async throws {
        let fake = try FakeBridge()
        let core = fake.core
        let reason = BluetoothError(.poweredOff, "blocked", advice: "Unblock it.")
        await core.note(AdapterStatus(.poweredOff, reason: reason))
        #expect(await core.status.reason == reason)
        await core.shutDown()
    }
}
