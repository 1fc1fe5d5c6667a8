// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@Suite struct AdapterStatusTests {
    @Test(arguments: AdapterState.allCases)
    func everyStateHasItsMessageAndEveryOneButReadyItsAdvice(state: AdapterState) {
        let status = AdapterStatus(state)
        #expect(!status.message.isEmpty && status.message.last != ".")
        #expect((status.advice == nil) == (state == .poweredOn))
        #expect(status.advice?.hasSuffix(".") ?? true)
        #expect(AdapterState.allCases.filter { $0.message == status.message } == [state])
    }

    @Test func aReasonSaysItBetter() {
        let reason = BluetoothError(.poweredOff, "Bluetooth is blocked by rfkill", advice: "Unblock it.")
        let status = AdapterStatus(.poweredOff, reason: reason)
        #expect(status.message == "Bluetooth is blocked by rfkill")
        #expect(status.advice == "Unblock it.")
        #expect(AdapterStatus(.poweredOff, reason: BluetoothError(.poweredOff, "off")).advice == "Switch Bluetooth on.")
    }
}
