// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct JSONTests {
    private func read(_ text: String) throws -> JSONValue {
        try JSONValue(parsing: Array(text.utf8))
    }

    @Test(
        arguments: [
            ("1", 1), ("1.0", 1), ("10e-1", 1), ("-0", 0), ("0.0", 0), ("1e2", 100), ("-12.50e1", -125),
            ("9223372036854775807", Int.max), ("-9223372036854775808", Int.min), ("0e999999999999", 0),
            ("1.5", nil), ("9223372036854775808", nil), ("1e19", nil), ("1e-1", nil), ("1e999999999999999999999", nil),
            ("\"1\"", nil), ("true", nil), ("null", nil),
        ] as [(String, Int?)])
    func `a number is an integer whatever its form, if it is one`(_ text: String, _ value: Int?) throws {
        #expect(try read(text).int == value)
    }

    @Test func `a double is finite or nil`() throws {
        #expect(try read("-1.5e3").double == -1500)
        #expect(try read("1e999").double == nil)
        #expect(try read("1e-999").double == 0)
        #expect(JSONValue.double(.nan) == .null)
        #expect(JSONValue.double(.infinity) == .null)
        #expect(try read(String(decoding: JSONValue.double(1e300).encoded(), as: UTF8.self)).double == 1e300)
    }

    @Test func `a value is written as it was read, but for white space`() throws {
        let text = #"{"b":[1.0,1E5,{"":null}],"a":"\u0001\n/\"","c":-0.10,"d":true}"#
        let spaced = text.replacing(",", with: " ,\n").replacing(":", with: "\t: ")
        #expect(try read(text).encoded() == Array(text.utf8))
        #expect(try read(spaced).encoded() == Array(text.utf8))
    }

    @Test func `an object keeps its order through changes`() {
        var object: JSONObject = ["z": 1, "a": 2, "z": 3]
        object["m"] = [1.5, "x", nil, true]
        object["z"] = 4
        #expect(object.keys == ["z", "a", "m"])
        #expect(String(decoding: object.encoded(), as: UTF8.self) == #"{"z":4,"a":2,"m":[1.5,"x",null,true]}"#)
        object["z"] = nil
        #expect(object.keys == ["a", "m"])
        #expect(object["z"] == nil)
        #expect(object.int("a") == 2 && object.string("a") == nil && object.array("m")?.count == 4)
    }

    @Test func `an object finds its keys with and without its index`() {
        var object = JSONObject()
        for number in 0..<100 { object["k\(number)"] = .int(number) }
        object["k50"] = nil
        object["k51"] = "x"
        #expect(object.count == 99)
        #expect(object["k50"] == nil && object["k51"] == "x" && object["k99"] == 99 && object["k0"] == 0)
        for number in 0..<95 { object["k\(number)"] = nil }
        #expect(object.keys == ["k95", "k96", "k97", "k98", "k99"])
        #expect(object["k97"] == 97)
    }

    @Test func `texts are compared as bytes`() {
        #expect(JSONValue.string("caf\u{E9}") != .string("cafe\u{301}"))
        let object: JSONObject = ["caf\u{E9}": 1, "cafe\u{301}": 2]
        #expect(object.count == 2 && object["cafe\u{301}"] == 2)
        #expect(Envelope.joinRequest(appId: "caf\u{E9}") != Envelope.joinRequest(appId: "cafe\u{301}"))
        #expect(Set([JSONValue.string("caf\u{E9}"), .string("cafe\u{301}")]).count == 2)
    }

    @Test func `64 KiB of keys, all different or all the same, are read`() throws {
        let different = "{" + (0..<5000).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(try read(different).object?.count == 5000)
        let same = "{" + (0..<9000).map { "\"k\":\($0)" }.joined(separator: ",") + "}"
        #expect(try read(same).object == ["k": 0])
    }

    @Test func `64 KiB of digits are a number`() throws {
        let text = String(repeating: "9", count: 65_536)
        let number = try read(text)
        #expect(number.int == nil && number.double == nil)
        #expect(number.encoded() == Array(text.utf8))
        #expect(try read("1" + String(repeating: "0", count: 65_536) + "e-65536").int == 1)
    }

    @Test(arguments: ["[", "{\"\":", "[[],", "{\"a\":{},\"b\":"])
    func `a megabyte of nesting is refused, not followed`(_ unit: String) {
        let bytes = Array(String(repeating: unit, count: 200_000).utf8)
        #expect {
            try JSONValue(parsing: bytes)
        } throws: {
            ($0 as? JSONError)?.code == .tooDeep
        }
    }

    @Test func `every prefix of a message is told from a broken one`() throws {
        let bytes = Envelope.handoff(
            appId: "é", sessionId: "s", payload: ["k": "\u{1F600}\"\n", "n": 1.5, "t": [true, nil]]
        ).encoded()
        for length in 1..<bytes.count {
            #expect(Envelope.isPrefix(Array(bytes[..<length])), "\(length)")
            #expect(!Envelope.isPrefix(Array(bytes[..<length]) + [0x01]))
        }
        #expect(!Envelope.isPrefix(bytes))
        #expect(!Envelope.isPrefix([]))
        #expect(!Envelope.isPrefix(Array("[".utf8)))
    }

    /// Damaged messages: none crashes, and what is taken is written and read alike.
    @Test(arguments: 0..<4)
    func `damaged messages do no harm`(_ seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let whole = Array(
            #"{"type":"join_request","protocolVersion":1.0,"appId":"é\ud83d\ude00","payload":{"a":[1e5,{}],"b":null}}"#
                .utf8)
        for _ in 0..<5_000 {
            var bytes = whole
            for _ in 0...Int.random(in: 0...3, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...3, using: &random) {
                case 0: bytes[position] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: position)
                case 2: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: position)
                default: bytes.removeLast(min(bytes.count - 1, 3))
                }
            }
            _ = Envelope.isPrefix(bytes)
            _ = AnswerVerdict.judge(bytes, appId: "a")
            if let envelope = try? Envelope.decode(bytes, as: .host) {
                #expect(try Envelope.decode(envelope.encoded(), as: .host) == envelope)
            }
        }
    }
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
