// SPDX-License-Identifier: MIT

import DBus
import Glibc
import NearbyProtocol

/// What the fuzzer begins with: the cases of shared/vectors, and a few messages of a bus.
enum Seeds {
    static func write(vectors: String, to folder: String) {
        for (name, _) in NearbyFuzz.targets { mkdir("\(folder)/\(name)", 0o755) }
        var texts: [[UInt8]] = []
        var hex: [[UInt8]] = []
        for file in ["decode", "exchange", "write", "client", "host", "frames", "hello", "sealing", "keys"] {
            guard let value = try? JSONValue(parsing: read("\(vectors)/\(file).json")) else { continue }
            collect(value, &texts, &hex)
        }
        for (number, text) in texts.enumerated() {
            save(text, "\(folder)/envelope/text\(number)")
            // Modes of the target: what a peer seals that knows the passcode.
            save([2] + text, "\(folder)/sealed/request\(number)")
            save([5] + text, "\(folder)/sealed/handoff\(number)")
        }
        for (number, bytes) in hex.enumerated() {
            if bytes.count >= 54, bytes.first == 1 { save(bytes, "\(folder)/hello/hello\(number)") }
            save(
                [185, 0, 10] + bytes.prefix(4) + [UInt8(min(bytes.count, 31))] + bytes.dropFirst(4),
                "\(folder)/frames/\(number)")
            save([1, 0, 0, 10, UInt8(clamping: bytes.count)] + bytes, "\(folder)/sealed/frame\(number)")
        }
        for mode: UInt8 in [0, 3, 4] {
            save([mode, 0], "\(folder)/sealed/right\(mode)")
            save([mode, 1, 0, 0, 20, 1], "\(folder)/sealed/wrong\(mode)")
        }
        arguments(folder, texts)
        messages(folder)
        bridge(vectors, folder)
    }

    /// Every example of the bridge protocol, which stands beside the vectors.
    private static func bridge(_ vectors: String, _ folder: String) {
        guard let file = try? JSONObject(parsing: read("\(vectors)/../bridge-protocol.json")) else { return }
        for kind in ["commands", "events"] {
            for (name, description) in file.object(kind) ?? [:] {
                guard let example = description.object?.object("example") else { continue }
                save([7, 64, 255, 1] + example.encoded() + [10], "\(folder)/bridge/\(name)")
            }
        }
        let hello = #"{"command":"hello","extension":1,"id":"a","token":"b"}"#
        let respond = #"{"command":"respond","requestId":1,"attError":129}"#
        save([0, 1, 2, 3] + Array("\(hello)\r\n\(respond)\n".utf8), "\(folder)/bridge/extension")
    }

    private static func arguments(_ folder: String, _ texts: [[UInt8]]) {
        let lines = [
            ["--app-id", "com.example.chat", "--payload", "roomCode=SWIFT42", "seats:=4", "--once", "-t", "2m"],
            [
                "-a", "com.example.chat", "--min-rssi", "-60", "--select=strongest", "--json", "-q", "--passcode",
                "482913",
            ],
            [
                "-acom.example.chat", "--adapter", "hci0", "--bus", "unix:path=/x", "--session-id",
                "550e8400-e29b-41d4-a716-446655440000", "--profile", "extended", "--name", "Kiosk", "--max-joins", "3",
            ],
            ["--adapters", "3", "--timeout", "1.5m", "-v", "--wait", "--all", "--", "a=1"],
        ]
        for (number, words) in lines.enumerated() {
            save([0] + Array(words.joined(separator: "\0").utf8), "\(folder)/arguments/line\(number)")
        }
        save([1] + Array("roomCode=SWIFT42\0n:=[1,2.5e3]\0é:={\"a\":null}".utf8), "\(folder)/arguments/pairs")
        let sent = #"{"attachmentName":"plan.pdf","attachmentSize":3,"attachmentData":"YWJj"}"#
        save([3] + Array(sent.utf8), "\(folder)/arguments/attachment")
        save([3] + Array("YWI=".utf8), "\(folder)/arguments/base64")
        save([3] + Array("../\u{202E}fdp.exe".utf8), "\(folder)/arguments/name")
        for (number, text) in texts.enumerated() { save([2] + text, "\(folder)/arguments/file\(number)") }
    }

    private static func messages(_ folder: String) {
        let device: [String: DBusValue] = [
            "RSSI": .int16(-60), "Connected": .bool(true), "Name": .string("Kiosk"), "UUIDs": .strings(["180d"]),
            "ManufacturerData": .dictionary(key: "q", value: "v", [DBusEntry(.uint16(1), .variant(.bytes([1, 2])))]),
            "ServiceData": .variantDictionary(["180d": .bytes([3])]), "Address": .string("00:11:22:33:44:55"),
        ]
        let interfaces = DBusValue.dictionary(
            key: "s", value: "a{sv}", [DBusEntry(.string("org.bluez.Device1"), .variantDictionary(device))])
        let objects = DBusValue.dictionary(
            key: "o", value: "a{sa{sv}}", [DBusEntry(.objectPath("/org/bluez/hci0/dev_00_11"), interfaces)])
        let bodies: [[DBusValue]] = [
            [], [.string("org.bluez.Device1"), .variantDictionary(device), .strings(["RSSI"])], [objects],
            [.objectPath("/org/bluez/hci0/dev_00_11"), interfaces],
            [.objectPath("/org/bluez/hci0"), .strings(["org.bluez.Adapter1"])],
            [.variant(.variant(.structure([.byte(1), .double(.nan), .signature("a{sv}")]))), .bytes([1, 2, 3])],
            [.array(of: "(yv)", [.structure([.byte(1), .variant(.uint64(.max))])]), .int64(.min), .uint32(7)],
        ]
        for (number, body) in bodies.enumerated() {
            guard let bytes = try? Marshalling.encode(body) else { continue }
            save(bytes, "\(folder)/dbus/message\(number)")
            // And with the header that the target makes: signature, then the body's bytes.
            let signature = Array(body.map(\.signature.string).joined().utf8)
            let size = bytes.count > 8 ? bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) } : 0
            save([UInt8(signature.count & 0x3F)] + signature + bytes.suffix(size), "\(folder)/dbus/body\(number)")
        }
    }

    /// Every text and every hexadecimal string in a vector file.
    private static func collect(_ value: JSONValue, _ texts: inout [[UInt8]], _ hex: inout [[UInt8]]) {
        switch value {
        case .object(let object): for element in object { collect(element.value, &texts, &hex) }
        case .array(let values): for value in values { collect(value, &texts, &hex) }
        case .string(let text):
            if text.utf8.first == UInt8(ascii: "{") { texts.append(Array(text.utf8)) }
            if text.utf8.count >= 8, text.utf8.count.isMultiple(of: 2), let bytes = bytes(text) { hex.append(bytes) }
        default: break
        }
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == hex.utf8.count else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }

    private static func save(_ bytes: some Collection<UInt8>, _ path: String) {
        guard let file = fopen(path, "w") else { return }
        defer { fclose(file) }
        _ = fwrite(Array(bytes), 1, bytes.count, file)
    }
}
