// SPDX-License-Identifier: MIT

import Foundation
import Testing

@testable import DeviceSession

/// Frames, against `shared/vectors/device-frames.json`.
@Suite struct FrameTests {
    struct File: Decodable {
        var format: Int
        var cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var name: String
        var frame: Format
        var packets: [String]
        var tokens: [Token]
        var isCanonical: Bool

        var testDescription: String { name }
    }

    struct Format: Decodable, Sendable {
        var start: String
        var headerBytes: Int
        var lengthBytes: Int
        var byteOrder: String
        var checksum: String
        var coverage: String
        var end: String
    }

    struct Token: Decodable, Sendable {
        var frame: String?
        var broken: String?
    }

    static let cases: [Case] = {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let path = root.appendingPathComponent("shared/vectors/device-frames.json")
        let file = (try? Data(contentsOf: path)).flatMap { try? JSONDecoder().decode(File.self, from: $0) }
        return file?.format == 1 ? file?.cases ?? [] : []
    }()

    private static func format(_ format: Format) throws -> FrameFormat {
        FrameFormat(
            start: bytes(format.start),
            headerBytes: format.headerBytes,
            lengthBytes: format.lengthBytes,
            byteOrder: try #require(.init(rawValue: format.byteOrder)),
            checksum: try #require(.init(rawValue: format.checksum)),
            coverage: try #require(.init(rawValue: format.coverage)),
            end: bytes(format.end)
        )
    }

    static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    @Test func thereAreVectors() { #expect(Self.cases.count > 10) }

    @Test(arguments: cases) func framesAreFound(_ vector: Case) throws {
        let format = try Self.format(vector.frame)
        var assembly = FrameAssembly(format)
        let now = ContinuousClock.now
        let tokens = vector.packets.flatMap { assembly.take(Self.bytes($0), at: now) }
        let expected = vector.tokens.map { token -> FrameAssembly.Token in
            token.frame.map { .frame(Self.bytes($0)) } ?? .broken(Self.bytes(token.broken ?? ""))
        }
        #expect(tokens == expected)
        if vector.isCanonical, let payload = vector.tokens.first?.frame {
            #expect(try format.frame(Self.bytes(payload)) == vector.packets.flatMap(Self.bytes))
        }
    }

    @Test func theTwoGoodFramesOfTheFieldAreThePreset() throws {
        #expect(try FrameFormat.twosComplement.frame([0]) == [0x7B, 0, 0, 1, 0, 0xFF, 0x7D])
        #expect(try FrameFormat.twosComplement.frame([1]) == [0x7B, 0, 0, 1, 1, 0xFE, 0x7D])
    }

    @Test(arguments: [FrameFormat.twosComplement, .sum, .xor])
    func whatIsFramedIsFoundAgainHoweverItIsCut(format: FrameFormat) throws {
        for count in [0, 1, 2, 19, 300] {
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 0x7B) }
            let frame = try format.frame(payload)
            for size in [1, 3, 20, 512] {
                var assembly = FrameAssembly(format)
                var found: [FrameAssembly.Token] = []
                for start in stride(from: 0, to: frame.count, by: size) {
                    found += assembly.take(Array(frame[start..<min(start + size, frame.count)]), at: .now)
                }
                #expect(found == [.frame(payload)], "\(count) bytes in packets of \(size)")
            }
        }
    }

    @Test func halfAFrameIsGivenUpAfterAWhile() throws {
        var assembly = FrameAssembly(.twosComplement)
        let start = ContinuousClock.now
        let frame = try FrameFormat.twosComplement.frame([1])
        #expect(assembly.take(Array(frame.prefix(5)), at: start) == [])
        #expect(assembly.take(frame, at: start + .seconds(1)) == [.frame([1])])
    }

    @Test func whatIsInsideABrokenFrameIsNotToldAgainUnlessItIsGood() throws {
        var assembly = FrameAssembly(.twosComplement)
        // A frame with a wrong checksum whose payload is a broken frame and a good one.
        let inner: [UInt8] = [0x7B, 0, 0, 1, 9, 9, 0x7D] + [0x7B, 0, 0, 1, 1, 0xFE, 0x7D]
        let outer: [UInt8] = [0x7B, 0, 0, UInt8(inner.count)] + inner + [0, 0x7D]
        let next: [UInt8] = [0x7B, 0, 0, 1, 5, 5, 0x7D]
        let tokens = (outer + next).flatMap { assembly.take([$0], at: .now) }
        #expect(tokens == [.broken(outer), .frame([1]), .broken(next)])
    }

    @Test(arguments: 1...20) func goodFramesAreFoundInNoise(seed: Int) throws {
        var state = UInt64(seed)
        func roll(_ sides: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % sides
        }
        var bytes: [UInt8] = []
        var expected: [FrameAssembly.Token] = []
        for _ in 0..<50 {
            // Noise without a start, which would swallow what follows.
            bytes += (0..<roll(20)).map { _ in UInt8(roll(256)) }.filter { $0 != 0x7B }
            let payload = (0..<roll(40)).map { _ in UInt8(roll(256)) }
            bytes += try FrameFormat.twosComplement.frame(payload)
            expected.append(.frame(payload))
        }
        var assembly = FrameAssembly(.twosComplement)
        var found: [FrameAssembly.Token] = []
        while !bytes.isEmpty {
            let packet = bytes.prefix(Int(roll(30)) + 1)
            found += assembly.take(Array(packet), at: .now)
            bytes.removeFirst(packet.count)
        }
        #expect(found == expected)
        for _ in 0..<200 { _ = assembly.take((0..<roll(60)).map { _ in UInt8(roll(256)) }, at: .now) }
    }

    /// A start in every four bytes, each of a frame that ends with the last byte and is none.
    @Test(.timeLimit(.minutes(1))) func manyLongFramesInEachOtherCostNoMoreThanTheirBytes() {
        let count = 65_536
        let hostile = stride(from: 0, to: count, by: 4).flatMap { start -> [UInt8] in
            let length = count - start - 6
            return length < 0
                ? [0, 0, 0, 0] : [0x7B, UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
        }
        var format = FrameFormat.twosComplement
        format.longestPayload = 65_536
        var assembly = FrameAssembly(format)
        var tokens: [FrameAssembly.Token] = []
        let time = ContinuousClock().measure { tokens = assembly.take(hostile, at: .now) }
        #expect(tokens == [.broken(hostile)])
        #expect(time < .seconds(5))
    }

    @Test(arguments: [Checksum.xor, .sum, .twosComplementOfSum], [0, 1, 7, 300])
    func theValueBetweenTwoRunningSumsIsThatOfTheBytes(checksum: Checksum, start: Int) {
        let bytes = (0..<600).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }
        let before = bytes[..<start].reduce(0) { checksum.running($0, $1) }
        let after = bytes[..<500].reduce(0) { checksum.running($0, $1) }
        #expect(checksum.value(from: before, to: after) == checksum.value(of: bytes[start..<500]))
    }

    @Test func noiseDoesNotGrow() {
        var assembly = FrameAssembly(.twosComplement)
        for _ in 0..<1_000 { #expect(assembly.take([UInt8](repeating: 0x7B, count: 500), at: .now).isEmpty) }
    }

    @Test(arguments: [
        FrameFormat(start: [], checksum: .sum), FrameFormat(start: [1], lengthBytes: 0, checksum: .sum),
        FrameFormat(start: [1], lengthBytes: 5, checksum: .sum),
        FrameFormat(start: [1], headerBytes: -1, checksum: .sum),
        FrameFormat(start: [1], checksum: .sum, longestPayload: 0),
    ])
    func aFormatThatMakesNoSenseIsRefused(format: FrameFormat) {
        #expect(throws: DeviceSessionError.self) { try format.frame([1]) }
        #expect(format.flaw != nil)
    }

    @Test func aPayloadThatDoesNotFitIsRefused() {
        #expect(throws: DeviceSessionError.self) {
            try FrameFormat(start: [1], checksum: .sum).frame([UInt8](repeating: 0, count: 256))
        }
        #expect(throws: DeviceSessionError.self) {
            try FrameFormat(start: [1], headerBytes: 2, checksum: .sum).frame([0])
        }
    }
}
