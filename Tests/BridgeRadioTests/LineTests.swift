// SPDX-License-Identifier: MIT

import Testing

@testable import BridgeRadio

@Suite struct LineTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `lines are cut wherever the chunks end`() {
        let text = bytes("one\ntwo\r\n\n\nthree\nfour")
        for size in 1...text.count {
            var buffer = LineBuffer(limit: 5)
            var lines: [[UInt8]] = []
            for start in stride(from: 0, to: text.count, by: size) {
                lines += buffer.take(text[start..<min(start + size, text.count)])
            }
            #expect(lines == [bytes("one"), bytes("two"), bytes("three")])
            #expect(!buffer.isBroken)
        }
    }

    @Test(arguments: ["123456\n", "1234567", "12345\n123456\n"])
    func `a line that is too long breaks the buffer, with its end and without`(text: String) {
        var buffer = LineBuffer(limit: 5)
        let lines = buffer.take(bytes(text))
        #expect(buffer.isBroken)
        #expect(lines == (text.hasPrefix("12345\n") ? [bytes("12345")] : []))
        #expect(buffer.take(bytes("1\n")).isEmpty)
    }

    @Test func `a line of the longest length is a line`() {
        var buffer = LineBuffer(limit: 5)
        #expect(buffer.take(bytes("12345\r\n12345\n")) == [bytes("12345"), bytes("12345")])
        #expect(!buffer.isBroken)
    }

    @Test func `who sends too fast is read later`() {
        let start = ContinuousClock.now
        var allowance = LineAllowance(LineRate(perSecond: 10, burst: 5), at: start)
        #expect(allowance.spend(5, at: start) == nil)
        #expect(allowance.spend(1, at: start) == start.advanced(by: .milliseconds(100)))
        let later = start.advanced(by: .seconds(60))
        #expect(allowance.spend(5, at: later) == nil)
        #expect(allowance.spend(10, at: later) == later.advanced(by: .seconds(1)))
    }
}
