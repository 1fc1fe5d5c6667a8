// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct AttachmentTests {
    private static let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    @Test func aFileGoesIntoThePayloadAndBack() throws {
        let folder = try TemporaryFolder()
        let attachment = try Attachment(reading: try folder.write("plan.bin", Self.bytes))
        var payload: NearbyPayload = ["room": "7"]
        try attachment.add(to: &payload)
        #expect(payload["attachmentName"] == "plan.bin")
        #expect(payload.object["attachmentSize"]?.int == 1_000)
        #expect(try Attachment(payload) == attachment)
        let target = try TemporaryFolder()
        let saved = try OutputFolder(target.path).save(attachment)
        #expect(saved == "\(target.path)/plan.bin")
        #expect(target.names == ["plan.bin"])
        #expect(target.read("plan.bin") == Self.bytes)
    }

    @Test func aFileThatIsThereStays() throws {
        let folder = try TemporaryFolder()
        _ = try folder.write("a", [1])
        let failure = #expect(throws: Failure.self) {
            try OutputFolder(folder.path).save(Attachment(name: "a", bytes: [2]))
        }
        #expect(failure?.exitCode == .outputFailed)
        #expect(folder.names == ["a"])
        #expect(folder.read("a") == [1])
    }

    @Test func aLinkIsNotFollowed() throws {
        let (folder, outside) = (try TemporaryFolder(), try TemporaryFolder())
        symlink("\(outside.path)/x", "\(folder.path)/a")
        #expect(throws: Failure.self) { try OutputFolder(folder.path).save(Attachment(name: "a", bytes: [2])) }
        #expect(outside.names.isEmpty)
    }

    @Test(arguments: [
        "", ".", "..", "../x", "/etc/x", "a/b", ".bashrc", "a\u{0}b", "a\nb", "\u{202E}gpj.exe",
        "plan.pdf\u{FE0F}", "plan.pdf\u{FE00}", "plan.pdf\u{E0100}", "plan.pdf\u{E01EF}",
        "❤\u{FE0F}.pdf", "pl\u{200D}an.pdf", "plan.pdf\u{3164}", String(repeating: "x", count: 256),
    ])
    func aNameThatCouldLeadOutOfTheFolderIsRefused(name: String) throws {
        let payload: NearbyPayload = [
            "attachmentName": .string(name), "attachmentSize": 1, "attachmentData": "Zg==",
        ]
        let failure = #expect(throws: Failure.self) { try Attachment(payload) }
        #expect(failure?.exitCode == .unfitPayload)
        let folder = try TemporaryFolder()
        #expect(throws: Failure.self) { try OutputFolder(folder.path).save(Attachment(name: name, bytes: [1])) }
        #expect(folder.names.isEmpty)
    }

    @Test(arguments: [
        ["attachmentName": "a", "attachmentSize": 2, "attachmentData": "Zg=="] as NearbyPayload,
        ["attachmentName": "a", "attachmentSize": 1, "attachmentData": "?"],
        ["attachmentName": "a", "attachmentSize": 1, "attachmentData": 5],
        ["attachmentName": "a"],
        ["attachmentSize": 1, "attachmentData": "Zg=="],
    ])
    func anAttachmentThatIsNoneIsRefused(payload: NearbyPayload) {
        #expect(throws: Failure.self) { try Attachment(payload) }
    }

    @Test func aPayloadWithoutOneHasNone() throws {
        #expect(try Attachment(["room": "7"]) == nil)
    }

    @Test func aFileThatCannotFitIsRefused() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("big", [UInt8](repeating: 0, count: 48 * 1_024 + 1))
        let failure = #expect(throws: Failure.self) { try Attachment(reading: path) }
        #expect(failure?.exitCode == .unfitPayload)
        #expect(throws: Failure.self) { try Attachment(reading: folder.path + "/missing") }
        #expect(throws: Failure.self) { try Attachment(reading: folder.path) }
    }

    @Test func keysThatAreTakenAreRefused() {
        var payload: NearbyPayload = ["attachmentName": "mine"]
        #expect(throws: Failure.self) { try Attachment(name: "a", bytes: []).add(to: &payload) }
    }

    @Test func aFolderThatIsNoneIsRefused() {
        #expect(throws: Failure.self) { try OutputFolder("/nowhere/at/all") }
        #expect(throws: Failure.self) { try OutputFolder("/dev/null") }
    }
}

@Suite struct TransferBarTests {
    @Test func itShowsAfterASecondAndNotTooOften() {
        let now = Guarded(Duration.zero)
        let bar = TransferBar { now.withLock { $0 } }
        #expect(bar.advance(1_024, of: 10_240) == nil)
        now.withLock { $0 = .milliseconds(999) }
        #expect(bar.advance(2_048, of: 10_240) == nil)
        now.withLock { $0 = .milliseconds(1_000) }
        #expect(bar.advance(5_120, of: 10_240) == "[##########··········] 5.0 KiB of 10.0 KiB")
        now.withLock { $0 = .milliseconds(1_050) }
        #expect(bar.advance(6_000, of: 10_240) == nil)
        #expect(bar.advance(10_240, of: 10_240) == "[####################] 10.0 KiB of 10.0 KiB")
        now.withLock { $0 = .milliseconds(1_200) }
        #expect(bar.advance(1_536, of: nil) == "1.5 KiB")
        bar.begin()
        #expect(bar.advance(2_048, of: nil) == nil)
    }
}
