// SPDX-License-Identifier: MIT

import BluetoothLE
import DeviceSession
import Foundation
import SimulatedRadio
import Testing

// What stands between a pair of markers is what docs/central.md shows, word for word.

// example: central
struct NotFound: Error {}

func visit(_ radio: any Central) async throws -> (level: UInt8?, answer: String) {
    guard let uart = BluetoothUUID("6E400001-B5A3-F393-E0A9-E50E24DCCA9E"),
        let outgoing = BluetoothUUID("6E400002-B5A3-F393-E0A9-E50E24DCCA9E"),
        let incoming = BluetoothUUID("6E400003-B5A3-F393-E0A9-E50E24DCCA9E")
    else { throw NotFound() }

    // Wait for power.
    for await status in radio.adapterStatuses() {
        if status.state == .poweredOn { break }
        print(status.message, status.advice ?? "")
    }

    // Scan, and filter: what is too far is not reported, what has another name is passed over.
    let scan = try await radio.scan(for: ScanFilter(minimumRSSI: -80))
    var found: Discovery?
    for await event in scan.events {
        guard case .discovered(let discovery) = event, discovery.advertisement.localName == "Meter" else { continue }
        found = discovery
        break
    }
    await scan.stop()
    guard let found else { throw NotFound() }

    // Connect, and disconnect whatever happens: a radio keeps a link that nobody uses.
    let connection = try await radio.connect(to: found.peer, timeout: .seconds(10))
    do {
        // Discover.
        let services = try await connection.discoverServices(awaiting: incoming)
        func find(_ uuid: BluetoothUUID, in service: BluetoothUUID) throws -> RemoteCharacteristic {
            let members = services.filter { $0.uuid == service }.flatMap(\.characteristics)
            guard let characteristic = members.first(where: { $0.uuid == uuid }) else { throw NotFound() }
            return characteristic
        }

        // Read.
        let level = try await connection.read(find(0x2A19, in: 0x180F)).first

        // Subscribe, then write: the answer may come before the write has returned.
        let subscription = try await connection.subscribe(to: find(incoming, in: uart))
        try await connection.write(Array("VERSION\r\n".utf8), to: find(outgoing, in: uart), type: .withResponse)
        var answer = ""
        for await value in subscription.values {
            answer += String(decoding: value, as: UTF8.self)
            if answer.last?.isNewline == true { break }
        }
        await connection.disconnect()
        return (level, answer)
    } catch {
        await connection.disconnect()
        throw error
    }
}
// end

// example: session
func talk(_ radio: any Central) async throws -> (DeviceFacts, [String]) {
    let profile = DeviceProfile.nordicUART.speakingAT()
    let session = try DeviceSession(
        profile: profile, radio: radio,
        configuration: DeviceSession.Configuration(reconnection: .attempts(5)))
    session.onEvent = { event in
        if case .line(let line) = event, !line.isResponse { print("unasked:", line.text) }
    }
    do {
        try await session.startScan(ScanRules(namePrefix: "Meter", minimumRSSI: -80))
        for await results in session.scanResultUpdates() where !results.isEmpty { break }
        guard let meter = session.scanResults.first else { throw NotFound() }

        try await session.connect(id: meter.id)
        try await session.waitUntil(.commandReady, timeout: .seconds(10))
        let lines = try await session.run("AT+VERSION", timeout: .seconds(2))
        try await session.withExclusiveSession {
            _ = try await session.run("AT+CONFIG=1")
            _ = try await session.run("AT+SAVE")
        }
        try await session.waitUntil(.deviceInfoReady, timeout: .seconds(10))
        let facts = session.facts
        await session.teardown()
        return (facts, lines)
    } catch {
        await session.teardown()
        throw error
    }
}
// end

/// The examples of docs/central.md do what they say, and are what stands there.
@Suite(.timeLimit(.minutes(1))) struct CentralExampleTests {
    private let bench = Bench()

    private static func file(_ path: String, from here: String = #filePath) throws -> String {
        let root = URL(fileURLWithPath: here)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    private static func script(_ line: String, _ device: ScriptedDevice) async {
        if line == "VERSION" { await device.say("1.2", ".3\r\n") } else { await device.say("1.2.3\r\nOK\r\n") }
    }

    @Test func theCentralReadsWritesAndHears() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget, script: Self.script)
            let (level, answer) = try await visit(bench.phone)
            #expect(level == 87)
            #expect(answer == "1.2.3\r\n")
            #expect(bench.medium.links.isEmpty)
            await device.stop()
        }
    }

    @Test func theSessionTalks() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget, script: Self.script)
            let (facts, lines) = try await talk(bench.phone)
            #expect(facts.batteryLevel == 87)
            #expect(lines == ["1.2.3"])
            await device.stop()
        }
    }

    @Test(arguments: ["central", "session"])
    func theDocumentShowsWhatIsCompiled(name: String) throws {
        let source = try Self.file("Tests/DeviceSessionTests/CentralExampleTests.swift")
        let start = try #require(source.range(of: "// example: \(name)\n"))
        let end = try #require(source.range(of: "// end\n", range: start.upperBound..<source.endIndex))
        let example = source[start.upperBound..<end.lowerBound]
        #expect(try Self.file("docs/central.md").contains("```swift\n\(example)```"))
    }

    @Test(arguments: AdapterState.allCases)
    func theDocumentHasEveryStateWithItsWords(state: AdapterState) throws {
        let row = "| `\(state.rawValue)` | \(state.message) | \(state.advice ?? "") |"
        #expect(try Self.file("docs/central.md").contains(row), "\(row)")
    }
}
