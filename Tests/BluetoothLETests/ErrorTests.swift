// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@Suite struct ErrorTests {
    @Test func anErrorsTextHasItsSubjectItsCauseAndTheAdviceInThatOrder() {
        let error = BluetoothError(
            .poweredOff, "the adapter is off", advice: "Switch it on.", subject: "hci0",
            cause: "org.bluez.Error.NotReady")
        #expect("\(error)" == "the adapter is off (hci0): org.bluez.Error.NotReady. Switch it on.")
    }

    @Test func whatIsMissingLeavesNoTrace() {
        #expect("\(BluetoothError(.busy, "another operation is in the way"))" == "another operation is in the way")
        #expect("\(BluetoothError(.busy, "busy", cause: "InProgress"))" == "busy: InProgress")
        #expect("\(BluetoothError(.busy, "busy", advice: "Wait."))" == "busy. Wait.")
        #expect("\(BluetoothError(.busy, "busy", subject: "hci0"))" == "busy (hci0)")
    }

    @Test func codesAreDistinctAndNamed() {
        let codes: [BluetoothError.Code] = [
            .adapterNotFound, .poweredOff, .unauthorized, .serviceUnavailable, .resetting, .peerNotFound,
            .connectionFailed,
            .notConnected, .disconnected, .attributeNotFound, .attributeError, .notSupported, .invalidArgument, .busy,
            .advertisingFailed, .limitExceeded, .timedOut, .cancelled, .internalFailure,
        ]
        #expect(Set(codes).count == codes.count)
        #expect(Set(codes.map(\.description)).count == codes.count)
        #expect(BluetoothError.cancelled.code == .cancelled)
    }

    @Test(
        arguments: [
            (0x01, "ATT 0x01 (invalid handle)"), (0x0D, "ATT 0x0D (invalid attribute value length)"),
            (0x80, "ATT 0x80"),
            (0x00, "ATT 0x00"), (0x10, "ATT 0x10"), (0xFF, "ATT 0xFF"),
        ] as [(UInt8, String)])
    func anATTErrorSaysItsCodeAndItsNameIfItHasOne(code: UInt8, text: String) {
        #expect("\(ATTError(rawValue: code))" == text)
    }

    @Test func aServiceOfTwoEqualCharacteristicsKeepsBoth() {
        let characteristic = LocalCharacteristic(0x2A00, [.read, .notify])
        let service = LocalService(0x180A, characteristics: [characteristic, characteristic])
        #expect(service.characteristics.count == 2)
        #expect(service.isPrimary)
    }

    @Test func propertiesHaveTheSpecificationsBits() {
        let bits: [(CharacteristicProperties, UInt16)] = [
            (.broadcast, 0x01), (.read, 0x02), (.writeWithoutResponse, 0x04), (.write, 0x08), (.notify, 0x10),
            (.indicate, 0x20), (.authenticatedSignedWrites, 0x40), (.extendedProperties, 0x80),
        ]
        for (property, bit) in bits { #expect(property.rawValue == bit) }
    }
}
