// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol
import Testing

@testable import NearbyDiscoveryKit

/// What a person is told of a search that failed.
@Suite struct FailureTextTests {
    private func error(_ code: ClientFailure.Code) -> NearbyError {
        NearbyError(ClientFailure(code, counts: Encounters(seen: 1, failed: 1)), app: "a", unavailability: nil)
    }

    /// bluetoothd answers the write with 0x0E for a host whose program hangs: nobody has said no.
    @Test func anUnlikelyErrorOnTheWriteIsNoRejection() {
        let silent = error(.rejected(Rejection(attError: ATTErrorCode(rawValue: 0x0E))))
        #expect(silent.code == .linkFailed)
        #expect(silent.message == "the host did not answer (its program hangs or has died)")
        #expect(silent.advice?.hasPrefix("Try again") == true)
        #expect(silent.rejection?.attError == 0x0E)
    }

    @Test(arguments: [
        (0, "no host of a was heard in time"), (1, "one host was heard, but had gone out of reach"),
        (2, "2 hosts were heard, but had gone out of reach"),
    ])
    func whatWasHeardOnceIsNotCalledUnheard(seen: Int, message: String) {
        let failure = ClientFailure(.nothingFound, counts: Encounters(seen: seen))
        #expect(NearbyError(failure, app: "a", unavailability: nil).message == message)
    }

    @Test(arguments: [UInt8(0x80), 0x81, 0x0D])
    func anotherErrorOnTheWriteIsOne(code: UInt8) {
        #expect(error(.rejected(Rejection(attError: ATTErrorCode(rawValue: code)))).code == .rejected)
    }

    @Test func aLinkThatTimesOutIsToldInOneSentence() {
        let cause = BluetoothError(.timedOut, "the device did not answer in time", cause: "org.bluez.Error.Failed: x.")
        let failure = error(.exchangeFailed(.link(LinkFailure(cause), during: .connecting)))
        #expect(failure.message == "the host did not answer while connecting; it may have left")
        #expect(failure.detail == "org.bluez.Error.Failed: x.")
    }

    @Test func theRadiosOwnWordsAreDetail() {
        let cause = BluetoothError(.connectionFailed, "the connection failed", cause: "org.bluez.Error.Failed: x.")
        let failure = error(.exchangeFailed(.link(LinkFailure(cause), during: .connecting)))
        #expect(failure.message == "the exchange with the host failed: the connection failed while connecting")
        #expect(failure.detail == "org.bluez.Error.Failed: x.")
    }
}
