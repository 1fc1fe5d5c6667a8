// SPDX-License-Identifier: MIT

import BluetoothLE

/// A case that one implementation is known not to keep, and why that is right or cannot be helped. It is run all the same,
/// and has to fail.
public struct ContractDifference: Sendable, Hashable {
    /// The bench's name, or its beginning: `BlueZ` stands for every version of it.
    public let radio: String
    /// The case's name.
    public let name: String
    public let reason: String
    /// How the violation, or the radio's error, begins; what fails otherwise is no difference, but a failure.
    public let violation: String

    func isOf(_ bench: String) -> Bool { bench == radio || bench.hasPrefix(radio + " ") }

    /// The one table of differences.
    public static let all: [ContractDifference] = [
        // SimulatedRadio keeps all of it.
        ContractDifference(
            radio: "BlueZSimulator",
            name: "A notification needs a subscriber",
            reason: """
                bluetoothd calls nothing when a bonded central returns to its subscription, so BlueZ's room cannot \
                know that nobody is subscribed, and sends.
                """,
            violation: Violation.toNobody
        ),
        ContractDifference(
            radio: "BlueZSimulator",
            name: "A cancelled subscription ends its stream, and is told to the peripheral",
            reason: "As above: a notification to nobody is no error on BlueZ.",
            violation: Violation.toNobody
        ),
        ContractDifference(
            radio: "BlueZSimulator",
            name: "Without a threshold a report comes with whatever RSSI there is",
            reason: """
                BlueZ signals small changes of RSSI only to those who give a threshold, so BlueZ's room always gives \
                one; the kernel then drops what has no reading.
                """,
            violation: Violation.notHeard
        ),
        ContractDifference(
            radio: "BlueZ",
            name: "Without a threshold a report comes with whatever RSSI there is",
            reason: "As on BlueZSimulator.",
            violation: Violation.notHeard
        ),
        ContractDifference(
            radio: "BlueZ",
            name: "A notification needs a subscriber",
            reason: "As on BlueZSimulator: a notification to nobody is no error.",
            violation: Violation.toNobody
        ),
        ContractDifference(
            radio: "BlueZ",
            name: "A cancelled subscription ends its stream, and is told to the peripheral",
            reason: "As on BlueZSimulator: a notification to nobody is no error.",
            violation: Violation.toNobody
        ),
        ContractDifference(
            radio: "BlueZSimulator 5.55",
            name: "An ATT error on the write is a rejection with its code",
            reason: Reason.oneCode,
            violation: Violation.otherCode
        ),
        ContractDifference(
            radio: "BlueZ 5.55",
            name: "An ATT error on the write is a rejection with its code",
            reason: Reason.oneCode,
            violation: Violation.otherCode
        ),
        ContractDifference(
            radio: "BlueZ 5.66",
            name: "512 bytes can be written",
            reason: "bluetoothd counts the request's header until 5.69, and refuses more than 510 (bluez/bluez#570).",
            violation: "the device refused: \(ATTError.invalidAttributeValueLength)"
        ),
        ContractDifference(
            radio: "BlueZ 5.87",
            name: "A device that was connected to for one service is found by another that it offers since",
            reason: """
                bluetoothd 5.87 dies of a filter that names services (bluez/bluez#2282), so nothing sees through its memory.
                """,
            violation: "the device: not within"
        ),
    ]

    private enum Reason {
        static let oneCode =
            "Before 5.66 bluetoothd makes 0x80 of every error that an application names (gatt-database.c)."
    }

    /// What several of them fail with.
    private enum Violation {
        static let toNobody = "a notification to nobody: succeeded in place of "
        static let otherCode = "the ATT error: the host said no: ATT 0x80"
        static let notHeard = "a report with the RSSI 127: not within "
    }
}
