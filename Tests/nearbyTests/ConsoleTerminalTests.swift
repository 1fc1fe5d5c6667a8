// SPDX-License-Identifier: MIT

import BlueZSimulator
import BluetoothLE
import DBus
import Glibc
import SimulatedRadio
import Testing

@testable import nearby

/// `nearby device console` as somebody has it who sits at a terminal. The device is the test's: it hears and says what
/// the test wants, when it wants it.
@Suite(
    .serialized, .timeLimit(.minutes(2)),
    .enabled(if: dlopen("libedit.so.2", RTLD_NOW) != nil, "libedit is not installed"))
struct ConsoleTerminalTests {
    private static let left = "\u{1B}[D"
    private static let up = "\u{1B}[A"
    private static let down = "\u{1B}[B"
    private static let backspace = "\u{7F}"

    /// A device with a UART, and the console that talks to it.
    private struct Desk {
        let console: TerminalProgram
        let medium: SimulatedMedium
        let gadget: SimulatedRadio
        let phone: SimulatedRadio
        private let bus: PrivateBus
        private let simulator: BlueZSimulator
        private let device: any PeripheralSession
        private let heard: AsyncStream<String>
        private let hearing: Task<Void, Never>

        init(_ options: [String] = []) async throws {
            bus = try await PrivateBus()
            medium = SimulatedMedium(clock: ContinuousClock())
            simulator = try await BlueZSimulator.start(on: .address(bus.address), medium: medium)
            phone = try #require(simulator.radios["hci0"])
            gadget = medium.addAdapter(name: "gadget")
            let device = try await gadget.serve(
                [
                    LocalService(
                        0xFFE0,
                        characteristics: [LocalCharacteristic(0xFFE1, [.write, .writeWithoutResponse, .notify])]
                    )
                ], advertising: AdvertisementRequest(localName: "Meter", serviceUUIDs: [0xFFE0]))
            self.device = device
            let (heard, hears) = AsyncStream.makeStream(of: String.self)
            self.heard = heard
            hearing = Task {
                for await case .write(let request) in device.events {
                    await device.respond(to: request.id, with: .accept)
                    hears.yield(String(decoding: request.value, as: UTF8.self))
                }
                hears.finish()
            }
            console = try TerminalProgram(["device", "console", "-d", "Meter", "--bus", bus.address] + options)
        }

        func says(_ line: String) async throws {
            let channel = LocalCharacteristicID(service: 0, characteristic: 0)
            try await device.notify(Array((line + "\r\n").utf8), on: channel, to: nil)
        }

        /// The next packet; `nil` where none comes within 20 s.
        func hears() async -> String? {
            let next = Task { [heard] () -> String? in
                for await text in heard { return text }
                return nil
            }
            let limit = Task {
                try await Task.sleep(for: .seconds(20))
                next.cancel()
            }
            defer { limit.cancel() }
            return await next.value
        }

        func setPowered(_ isPowered: Bool) async { await simulator.setPowered(isPowered, adapter: "hci0") }

        func close() async {
            console.kill()
            _ = await console.ended()
            await device.stop()
            await simulator.stop()
            bus.stop()
        }
    }

    private func atTheDesk(_ options: [String] = [], _ body: (Desk) async throws -> Void) async throws {
        let desk = try await Desk(options)
        do {
            let welcome = "[Connected to Meter; Ctrl-D ends.]"
            let isReady = await desk.console.shows { $0.rows.contains(welcome) && $0.cursor == (">", 2) }
            try #require(isReady, "\(desk.console.rows)")
            try await body(desk)
        } catch {
            await desk.close()
            throw error
        }
        await desk.close()
    }

    @Test func aLineIsEditedBeforeItIsSent() async throws {
        try await atTheDesk { desk in
            let console = desk.console
            console.type("VERSOINX")
            #expect(await console.edits("> VERSOINX"))
            console.type(Self.backspace)
            #expect(await console.edits("> VERSOIN"))
            // Back to behind the S, and to the second I.
            console.type(Self.left + Self.left + Self.left)
            #expect(await console.edits("> VERSOIN", at: 6))
            console.type("I")
            #expect(await console.edits("> VERSIOIN", at: 7))
            console.type("\u{05}" + Self.left + Self.backspace)
            #expect(await console.edits("> VERSION", at: 8))
            console.type("\r")
            #expect(await desk.hears() == "VERSION\r\n")
            #expect(await console.edits("> "))
            #expect(console.rows.contains("> VERSION"))
        }
    }

    @Test func earlierLinesComeBack() async throws {
        try await atTheDesk { desk in
            let console = desk.console
            for line in ["first", "second"] {
                console.type(line + "\r")
                #expect(await desk.hears() == line + "\r\n")
            }
            #expect(await console.edits("> "))
            console.type(Self.up)
            #expect(await console.edits("> second"))
            console.type(Self.up)
            #expect(await console.edits("> first"))
            console.type("ly\r")
            #expect(await desk.hears() == "firstly\r\n")
            console.type(Self.up + Self.up + Self.down)
            #expect(await console.edits("> firstly"))
        }
    }

    @Test func whatTheDeviceSaysLeavesTheLineAlone() async throws {
        try await atTheDesk { desk in
            let console = desk.console
            console.type("half a liene")
            #expect(await console.edits("> half a liene"))
            console.type(Self.left + Self.left)
            #expect(await console.edits("> half a liene", at: 12))
            for number in 1...20 { try await desk.says("reading \(number)") }
            #expect(await console.shows { $0.rows.contains("reading 20") && $0.cursor.row == "> half a liene" })
            #expect(console.rows.filter { $0.hasPrefix("reading") } == (1...20).map { "reading \($0)" })
            // The cursor is where it was, and so is what is typed on.
            #expect(await console.edits("> half a liene", at: 12))
            console.type(Self.backspace + "\r")
            #expect(await desk.hears() == "half a line\r\n")
        }
    }

    @Test func whatTheDeviceSaysCannotMoveTheCursor() async throws {
        try await atTheDesk { desk in
            try await desk.says("\u{1B}[2J\u{1B}[1;1Hgotcha")
            #expect(await desk.console.shows { $0.rows.contains(#"\u{1b}[2J\u{1b}[1;1Hgotcha"#) })
        }
    }

    @Test func theEndOfTheInputEndsTheConsole() async throws {
        try await atTheDesk { desk in
            desk.console.type("\u{04}")
            let status = await desk.console.ended()
            #expect(status == 0)
            #expect(desk.console.isAsBefore)
            #expect(desk.medium.links.isEmpty)
        }
    }

    @Test func anInterruptEndsTheConsoleInTheMiddleOfALine() async throws {
        try await atTheDesk { desk in
            desk.console.type("half")
            #expect(await desk.console.edits("> half"))
            #expect(!desk.console.isAsBefore)
            desk.console.type("\u{03}")
            #expect(await desk.console.ended() == ExitCode.interrupted.rawValue)
            #expect(desk.console.isAsBefore)
            #expect(desk.medium.links.isEmpty)
        }
    }

    @Test func aLossAndAReturnAreToldAboveTheLine() async throws {
        try await atTheDesk(["--reconnect", "5"]) { desk in
            let console = desk.console
            console.type("half")
            #expect(await console.edits("> half"))
            desk.medium.drop(between: desk.phone, and: desk.gadget)
            let lost = "[The connection was lost; trying again…]"
            #expect(await console.shows { $0.rows.contains(lost) && $0.cursor == ("> half", 6) })
            // What is sent meanwhile is kept until the device is there again.
            console.type("\r")
            #expect(await desk.hears() == "half\r\n")
            #expect(await console.shows { $0.rows.contains("[Connected again.]") })
        }
    }

    @Test func aWaitForBluetoothIsExplained() async throws {
        try await atTheDesk(["--reconnect", "1"]) { desk in
            let console = desk.console
            await desk.setPowered(false)
            #expect(await console.shows { $0.rows.contains { $0.hasPrefix("[waiting for Bluetooth: the Bluetooth") } })
            await desk.setPowered(true)
            #expect(await console.shows { $0.rows.contains("[Connected again.]") })
            let rows = console.rows
            #expect(rows.contains("[No longer waiting for Bluetooth; trying again…]"))
            // The sentence is longer than the terminal is wide.
            let reason = "the Bluetooth adapter is off (hci0). Run `bluetoothctl power on`.]"
            #expect(rows.joined().contains(reason), "\(rows)")
            #expect(rows.count { $0.hasPrefix("[waiting for Bluetooth") } == 1, "\(rows)")
        }
    }
}
