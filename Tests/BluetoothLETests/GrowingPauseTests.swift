// SPDX-License-Identifier: MIT
import BluetoothLE
import Testing

@Suite struct GrowingPauseTests {
    @Test func itDoublesToTheLongestAndBeginsAnewAfterASuccess() {
        var pause = GrowingPause(.seconds(2) ... .seconds(7))
        #expect((0..<4).map { _ in pause.next() } == [.seconds(2), .seconds(4), .seconds(7), .seconds(7)])
        pause.reset()
        #expect(pause.next() == .seconds(2))
    }
}
