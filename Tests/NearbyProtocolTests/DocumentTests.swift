// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct DocumentTests {
    private let document: String

    init() throws {
        document = try SharedFiles.text("docs/protocol.md")
    }

    @Test func `the table of payload bytes by MTU is right`() throws {
        let rows = document.split(separator: "\n").map { line in
            line.split(separator: "|").map { Int($0.filter { !$0.isWhitespace }) }
        }.filter { $0.count == 5 && $0.allSatisfy { $0 != nil } }.map { $0.compactMap { $0 } }
        #expect(rows.count >= 10)
        #expect(Set([23, 185, 247, 517]).isSubset(of: rows.map { $0[0] }))
        for row in rows {
            for (multiple, column) in [(true, 1), (false, 3)] {
                let budget = NotificationBudget(mtu: row[0], mayUseMultipleNotificationPDU: multiple)
                let payload = budget.payloadBytes(
                    appId: "com.example.myapp", sessionId: "550e8400-e29b-41d4-a716-446655440000")
                #expect(Array(row[column...column + 1]) == [budget.bytes, payload], "MTU \(row[0])")
            }
        }
    }

    @Test func `the document names every UUID and every reason, in order`() {
        for uuid in [
            NearbyService.service, NearbyService.message, NearbyService.hello, NearbyService.channel,
        ] {
            #expect(document.contains(uuid))
        }
        let reasons = document.split(separator: "\n").compactMap { line -> String? in
            guard line.hasPrefix("| `") else { return nil }
            let name = line.dropFirst(3).prefix { $0 != "`" }
            return RejectReason.known.contains { $0.rawValue == name } ? String(name) : nil
        }
        #expect(reasons == RejectReason.known.map(\.rawValue))
    }

    @Test func `the example is written as it stands`() throws {
        let line = try #require(document.split(separator: "\n").first { $0.hasPrefix("{\"type\"") })
        #expect(try Envelope.decode(Array(line.utf8), as: .client).encoded() == Array(line.utf8))
    }
}
