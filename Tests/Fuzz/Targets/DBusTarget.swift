// SPDX-License-Identifier: MIT

import BluetoothLE

@testable import BlueZ
@testable import DBus

/// Messages from a hostile bus: libdbus judges their bytes, our reader makes values of them, and the object view takes
/// what it wants.
enum DBusTarget {
    private static let adapter: ObjectPath = "/org/bluez/hci0"
    private static let device: ObjectPath = "/org/bluez/hci0/dev_00_11"

    static func test(_ bytes: [UInt8]) {
        let whole = framed(bytes)
        let message: DBusMessage
        do throws(DBus.DBusError) {
            message = try Marshalling.decode(whole)
        } catch {
            require([.invalidArgument, .limitExceeded].contains(error.code), "a documented error: \(error)")
            return
        }
        require(
            message.body.map(\.signature.string).joined() == message.signature.string, "the values are of their types")
        require(Signature.isValid(message.signature.string), "the signature is one")
        writeAgain(message, whole)
        for value in message.body { access(value) }
        view(message)
    }

    /// A whole message where the bytes begin as one; else a signature, its length before it, and a body.
    private static func framed(_ bytes: [UInt8]) -> [UInt8] {
        if let first = bytes.first, [UInt8(ascii: "l"), UInt8(ascii: "B")].contains(first) { return bytes }
        var input = FuzzInput(bytes)
        let signature = input.bytes(Int(input.byte() & 0x3F))
        let body = input.everything()
        func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 0xFF) } }
        var fields: [UInt8] = []
        for (code, type, text) in [(1, "o", device.string), (2, "s", "org.freedesktop.DBus.Properties"), (3, "s", "M")]
        {
            while fields.count % 8 != 0 { fields.append(0) }
            fields += [UInt8(code), 1] + Array(type.utf8) + [0] + number(text.utf8.count) + Array(text.utf8) + [0]
        }
        while fields.count % 8 != 0 { fields.append(0) }
        fields += [8, 1, UInt8(ascii: "g"), 0, UInt8(signature.count)] + signature + [0]
        var message = [UInt8(ascii: "l"), 4, 0, 1] + number(body.count) + number(1) + number(fields.count) + fields
        while message.count % 8 != 0 { message.append(0) }
        return message + body
    }

    private static func writeAgain(_ message: DBusMessage, _ bytes: [UInt8]) {
        let written: [UInt8]
        do throws(DBus.DBusError) {
            written = try Marshalling.encode(message.body)
        } catch {
            // The reader takes what libdbus takes; the writer's own bounds may be closer.
            require([.limitExceeded, .invalidArgument].contains(error.code), "a documented error: \(error)")
            require(message.body.contains(where: isBeyondWriting), "what was read can be written: \(error)")
            return
        }
        let again = try? Marshalling.decode(written)
        // D-Bus has one form for each value, padding included: what is little-endian comes out as it went in.
        if bytes.first == UInt8(ascii: "l") {
            func number(_ place: Int) -> Int { bytes[place..<place + 4].reversed().reduce(0) { $0 << 8 | Int($1) } }
            let (size, start) = (number(4), (16 + number(12) + 7) & ~7)
            require(written.suffix(size) == bytes[start..<start + size], "the body is written as it was read")
        }
        // By their bytes, since not a number is not equal to itself.
        require(again.flatMap { try? Marshalling.encode($0.body) } == written, "and is read again")
        require(again?.signature == message.signature, "with its signature")
    }

    /// File descriptors that did not come, and nesting of variants in what is nested already.
    private static func isBeyondWriting(_ value: DBusValue) -> Bool { depth(value) > 30 || hasDescriptor(value) }

    private static func depth(_ value: DBusValue) -> Int {
        1 + (children(value).map(depth).max() ?? 0)
    }

    private static func hasDescriptor(_ value: DBusValue) -> Bool {
        if case .unixFD = value { true } else { children(value).contains(where: hasDescriptor) }
    }

    private static func children(_ value: DBusValue) -> [DBusValue] {
        switch value {
        case .variant(let inner): [inner]
        case .array(of: _, let values), .structure(let values): values
        case .dictionary(key: _, value: _, let entries): entries.flatMap { [$0.key, $0.value] }
        default: []
        }
    }

    private static func access(_ value: DBusValue) {
        require(value.asEntries == nil || value.asArray == nil, "a value is of one type")
        let isInteger = value.asInteger != nil
        require(!isInteger || value.asString == nil && value.asBytes == nil && value.asDouble == nil, "and of no other")
        _ = (value.asBool, value.asStructure, value.asSignature, value.asUnixFD, value.asObjectPaths)
        require(value.asStrings.map { $0.count == value.asArray?.count } ?? true, "an array keeps its elements")
        require(value.asManagedObjects.map { $0.count <= value.asEntries?.count ?? 0 } ?? true, "objects are entries")
    }

    // MARK: What BlueZ's room makes of it

    private static let known: ObjectView = {
        var view = ObjectView()
        view.load([
            adapter: [BlueZName.adapter: ["Powered": .bool(true)]],
            device: [BlueZName.device: ["Address": .string("00:11:22:33:44:55")]],
        ])
        return view
    }()

    private static func view(_ message: DBusMessage) {
        var view = known
        if let objects = message.body.first?.asManagedObjects { view.load(objects) }
        if let interfaces = message.body.last?.asInterfaces { _ = view.added(device, interfaces) }
        if let properties = message.body.last?.asDictionary {
            let names = message.body.compactMap(\.asString)
            for interface in [BlueZName.adapter, BlueZName.device] {
                _ = view.changed(
                    interface == BlueZName.adapter ? adapter : device, interface, properties, invalidated: names)
            }
        }
        if let path = message.body.first?.asObjectPath, let names = message.body.last?.asStrings {
            _ = view.removed(path, names)
        }
        require(view.devices.count <= BlueZ.Limits.devices && view.adapters.count <= BlueZ.Limits.adapters, "bounded")
        require(view.services.count + view.characteristics.count <= 2 * BlueZ.Limits.attributes, "bounded")
        for (path, device) in view.devices {
            require(device.rssi.map { (-128...127).contains($0) } ?? true, "a reading is one")
            require((device.advertisement.localName?.utf8.count ?? 0) <= BlueZ.Limits.nameBytes, "a name is bounded")
            require(device.advertisement.serviceUUIDs.count <= BlueZ.Limits.deviceUUIDs, "and so is the rest")
            _ = view.remoteServices(of: path)
        }
    }
}
