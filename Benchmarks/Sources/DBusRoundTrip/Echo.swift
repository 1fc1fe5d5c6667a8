// SPDX-License-Identifier: MIT

import DBus

/// The call, as `C/bench.h` has it.
struct Echo: Sendable {
    struct Mismatch: Error {}

    static let text = "/org/bluez/hci0/dev_00_11_22_33_44_55"
    static let bytes: [UInt8] = [1, 2, 3, 4, 5] + Array(repeating: 0, count: 15)

    let path: ObjectPath

    init() throws {
        guard let path = ObjectPath(validating: "/org/example/Echo") else { throw Mismatch() }
        self.path = path
    }

    nonisolated(nonsending) func call(_ connection: DBusConnection) async throws {
        let answer = try await connection.call(
            "org.example.Echo", path, "org.example.Echo", "Echo",
            [.string(Self.text), .bytes(Self.bytes)],
            returning: "say"
        )
        guard answer.count == 2, answer[0].asString == Self.text, answer[1].asBytes == Self.bytes else {
            throw Mismatch()
        }
    }
}
