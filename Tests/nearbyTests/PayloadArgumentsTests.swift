// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct PayloadArgumentsTests {
    @Test(arguments: [
        (["a=1"], #"{"a":"1"}"#),
        (["b=2", "a=1"], #"{"b":"2","a":"1"}"#),
        (["a="], #"{"a":""}"#),
        (["a=b=c"], #"{"a":"b=c"}"#),
        (["url=http://x:=1"], #"{"url":"http://x:=1"}"#),
        (["a:=1"], #"{"a":1}"#),
        (["a:=[1, true, null]"], #"{"a":[1,true,null]}"#),
        (["a:={\"b\":\"c\"}"], #"{"a":{"b":"c"}}"#),
        (["a:=\"x\""], #"{"a":"x"}"#),
        (["a:b=c"], #"{"a:b":"c"}"#),
        (["ключ=значение"], #"{"ключ":"значение"}"#),
        (["e\u{301}=1", "\u{E9}=2"], "{\"e\u{301}\":\"1\",\"\u{E9}\":\"2\"}"),
    ])
    func readsPairs(pairs: [String], json: String) throws {
        let payload = try PayloadArguments.parse(pairs: pairs)
        #expect(payload.object.encoded().elementsEqual(json.utf8))
    }

    @Test(arguments: [
        (["a"], "has no ="), (["=1"], "has no key"), ([":=1"], "has no key"), (["a:="], "is not JSON"),
        (["a:=x"], "is not JSON"), (["a:=1 2"], "is not JSON"), (["a=1", "a=2"], "the key “a” is given twice"),
        (["a:=" + String(repeating: "[", count: 10_000)], "is not JSON"),
        (Array(repeating: "a=1", count: 257), "at most 256 pairs"),
    ])
    func refusesPairs(pairs: [String], words: String) {
        let failure = #expect(throws: Failure.self) { try PayloadArguments.parse(pairs: pairs) }
        #expect(failure?.message.hasPrefix("--payload: ") == true)
        #expect(failure?.message.contains(words) == true, "\(failure?.message ?? "")")
        #expect(failure?.exitCode == .usage)
    }

    @Test(arguments: [
        ("", "is not JSON"), ("[1]", "not an object"), ("\"x\"", "not an object"), ("{\"a\":1", "is not JSON"),
        ("{}x", "is not JSON"), ("\u{FEFF}{}", "is not JSON"),
        (String(repeating: " ", count: 65_537), "larger than 65536 bytes"),
        (String(repeating: "{\"a\":", count: 1_000), "is not JSON"),
    ])
    func refusesFiles(text: String, words: String) {
        let failure = #expect(throws: Failure.self) {
            try PayloadArguments.parse(file: [UInt8](text.utf8), named: "-")
        }
        #expect(failure?.message.contains(words) == true, "\(failure?.message ?? "")")
        #expect(failure?.exitCode == .unfitPayload)
    }

    @Test func readsFilesOfObjects() throws {
        let payload = try PayloadArguments.parse(file: [UInt8]("{\"a\": \"b\"}\n".utf8), named: "x.json")
        #expect(payload == ["a": "b"])
    }

    @Test func refusesBytesThatAreNotUTF8() {
        let failure = #expect(throws: Failure.self) {
            try PayloadArguments.parse(file: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], named: "x\u{1B}")
        }
        #expect(failure?.message.contains("“x\\u{1b}” is not JSON") == true)
    }
}
