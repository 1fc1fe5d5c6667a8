// SPDX-License-Identifier: MIT

import DBus
import Testing

@Suite struct ValueTests {
    // Computed: LeakSanitizer does not see through the tagged pointers of a global.
    static var samples: [DBusValue] {
        [
            .byte(0), .byte(255), .bool(true), .bool(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max),
            .int64(.min), .uint64(.max), .double(-0.5), .double(.infinity), .string(""), .string("grüße 🌍"),
            .objectPath("/"), .objectPath("/org/bluez/hci0/dev_00_11"), .signature(""), .signature("a{oa{sa{sv}}}"),
            .bytes([]), .bytes([UInt8](0...255)), .strings([]), .strings(["a", "", "c"]), .objectPaths(["/a", "/b"]),
            .array(of: "ay", [.bytes([1]), .bytes([])]),
            .array(of: "(yv)", [.structure([.byte(1), .variant(.bool(true))])]),
            .array(of: "aas", []), .structure([.byte(1), .uint64(2), .string("x")]),
            .structure([.structure([.double(1)]), .bytes([9])]), .variant(.variant(.variant(.int16(3)))),
            .variant(.bytes([1, 2, 3])), .variantDictionary([:]),
            .variantDictionary(["UUIDs": .strings(["180d"]), "RSSI": .int16(-60), "Data": .bytes([1])]),
            .dictionary(key: .byte, value: "(xs)", [DBusEntry(.byte(1), .structure([.int64(1), .string("s")]))]),
            .dictionary(
                key: "q", value: "v", [DBusEntry(.uint16(0xffff), .variant(.bytes([1, 2])))]),
            .dictionary(
                key: .objectPath, value: "a{sa{sv}}",
                [
                    DBusEntry(
                        .objectPath("/x"),
                        .dictionary(
                            key: .string, value: "a{sv}",
                            [DBusEntry(.string("org.example.I"), .variantDictionary(["P": .uint32(1)]))]))
                ]),
        ]
    }

    @Test(arguments: samples)
    func surviveTheWireUnchanged(_ value: DBusValue) throws {
        let message = try Marshalling.decode(Marshalling.encode([value]))
        #expect(message.body == [value])
        #expect(message.signature == value.signature)
        #expect(message.signature.isSingle)
    }

    @Test func surviveTheWireTogether() throws {
        let message = try Marshalling.decode(Marshalling.encode(ValueTests.samples.filter { $0.signature != "v" }))
        #expect(message.body == ValueTests.samples.filter { $0.signature != "v" })
    }

    static var wrong: [(DBusValue, DBusError.Code)] {
        [
            (.string("a\0b"), .invalidArgument),
            (.structure([]), .invalidArgument),
            (.array(of: "ss", []), .invalidArgument),
            (.array(of: "", []), .invalidArgument),
            (.array(of: .byte, [.byte(1)]), .invalidArgument),
            (.array(of: .string, [.int16(1)]), .invalidArgument),
            (.array(of: .string, [.string("a"), .objectPath("/")]), .invalidArgument),
            (.dictionary(key: "v", value: "s", []), .invalidArgument),
            (.dictionary(key: "as", value: "s", []), .invalidArgument),
            (.dictionary(key: "s", value: "ss", []), .invalidArgument),
            (.dictionary(key: "s", value: "v", [DBusEntry(.string("k"), .string("not a variant"))]), .invalidArgument),
            (.dictionary(key: "s", value: "v", [DBusEntry(.byte(1), .variant(.byte(1)))]), .invalidArgument),
            (.unixFD(UnixFD(owning: -1)), .invalidArgument),
            (.unixFD(UnixFD(owning: 1_000_000)), .internalFailure),
            (ValueTests.nested(33) { .structure([$0]) }, .invalidArgument),
            (ValueTests.nested(65) { .variant($0) }, .limitExceeded),
            (.variant(ValueTests.nested(33) { .structure([$0]) }), .invalidArgument),
            (.bytes([UInt8](repeating: 0, count: 1 << 25)), .limitExceeded),
            (.structure([DBusValue](repeating: .byte(1), count: 254)), .invalidArgument),
        ]
    }

    @Test(arguments: wrong.indices)
    func areRefusedBeforeLibdbusSeesThem(_ index: Int) {
        let (value, code) = ValueTests.wrong[index]
        #expect { try Marshalling.encode([value]) } throws: { ($0 as? DBusError)?.code == code }
    }

    /// As deep as the specification allows: libdbus must take what our check takes.
    @Test func mayBeNestedToTheLimit() throws {
        let structures = ValueTests.nested(32) { .structure([$0]) }
        let variants = ValueTests.nested(63) { .variant($0) }
        let arrays = ValueTests.nested(32) { .array(of: $0.signature, [$0]) }
        for value in [structures, variants, arrays, .variant(structures)] {
            #expect(try Marshalling.decode(Marshalling.encode([value])).body == [value])
        }
    }

    static func nested(_ depth: Int, _ wrap: (DBusValue) -> DBusValue) -> DBusValue {
        (0..<depth).reduce(.int16(1)) { value, _ in wrap(value) }
    }

    @Test func messagesOfTooManyValuesAreNotRead() throws {
        let many = DBusValue.array(of: "as", [DBusValue](repeating: .strings([]), count: (1 << 20) + 1))
        let bytes = try Marshalling.encode([many])
        #expect { try Marshalling.decode(bytes) } throws: { ($0 as? DBusError)?.code == .limitExceeded }
    }

    /// Every byte of a message changed, and every length cut: an error or a message, never a crash; and what is read
    /// can be written again.
    @Test func hostileBytesAreRefusedOrRead() throws {
        let sample = try Marshalling.encode(ValueTests.samples.filter { $0.signature != .bytes })
        var generator = Numbers(state: 42)
        for length in 0..<sample.count { _ = try? Marshalling.decode(Array(sample[..<length])) }
        var read = 0
        for _ in 0..<20_000 {
            var bytes = sample
            for _ in 0...Int(generator.next() % 3) {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            guard let message = try? Marshalling.decode(bytes) else { continue }
            read += 1
            #expect(try Marshalling.decode(Marshalling.encode(message.body)).body.count == message.body.count)
        }
        #expect(read > 0)
    }

    @Test func accessorsLookThroughVariants() {
        let value = DBusValue.variant(.variant(.string("x")))
        #expect(value.asString == "x")
        #expect(value.asUInt16 == nil)
        #expect(DBusValue.uint16(7).asInteger == 7)
        #expect(DBusValue.uint64(.max).asInteger == nil)
        #expect(DBusValue.bytes([1, 2]).asArray == [.byte(1), .byte(2)])
        #expect(DBusValue.variantDictionary(["a": .byte(1)]).asDictionary == ["a": .byte(1)])
        #expect(DBusValue.strings(["a"]).asStrings == ["a"])
        #expect(DBusValue.strings(["a"]).asObjectPaths == nil)
        let managed = ValueTests.samples.last?.asManagedObjects
        #expect(managed == ["/x": ["org.example.I": ["P": .uint32(1)]]])
        #expect(DBusValue.string("x").asManagedObjects == nil)
    }
}

/// A small generator, so that a failure repeats (xorshift64).
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}
