// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// Commands over a link to devices that behave, and to such as do not.
@Suite(.timeLimit(.minutes(2))) struct CommandTests {
    private let bench = Bench()

    @Test(arguments: [
        ("AT", []), ("AT+VERSION", ["1.2.3"]), ("AT+SPLIT", ["first", "second"]),
        ("AT+CHATTY", (1...50).map { "line \($0)" }), ("AT+SLOW", ["slow"]), ("AT+RING", ["before", "after"]),
    ])
    func aResponseIsItsLinesWithoutBorders(line: String, expected: [String]) async throws {
        let lines = try await bench.withSession { (session, _) async throws in try await session.run(line) }
        #expect(lines == expected)
    }

    @Test func anErrorLineIsAnErrorAndTheNextCommandWorks() async throws {
        try await bench.withSession { (session, _) async throws in
            let error = await failure { try await session.run("AT+NONSENSE") }
            #expect(error?.code == .deviceRefused)
            #expect(error?.lines == ["ERROR"])
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
        }
    }

    @Test func unsolicitedLinesAreEventsAndNoResponse() async throws {
        try await bench.withSession { (session, _) async throws in
            let log = EventLog()
            session.onEvent = { log.add($0) }
            #expect(try await session.run("AT+RING") == ["before", "after"])
            #expect(
                log.lines == [
                    DeviceLine("before", isResponse: true), DeviceLine("RING", isResponse: false),
                    DeviceLine("after", isResponse: true), DeviceLine("OK", isResponse: true),
                ])
        }
    }

    @Test func aSilentDeviceIsATimeOutOnTheRadiosClock() async throws {
        let clock = bench.clock
        try await bench.withSession { (session, _) async throws in
            let began = clock.now
            let error = await failure { try await session.run("AT+SILENT", timeout: .seconds(7)) }
            #expect(error?.code == .timedOut)
            #expect(began.duration(to: clock.now) == .seconds(7))
            #expect(try await session.run("AT") == [])
        }
    }

    @Test func aLateAnswerIsNotTakenForTheNextOnes() async throws {
        try await bench.withSession { (session, _) async throws in
            // Its answer comes after 3 s, 100 ms after it was given up: the next command waits for it.
            let error = await failure { try await session.run("AT+SLOW", timeout: .milliseconds(2_900)) }
            #expect(error?.code == .timedOut)
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
        }
    }

    @Test func concurrentCommandsGetTheirOwnAnswersInTheOrderOfTheCalls() async throws {
        let script: ScriptedDevice.Script = { line, device in
            await device.pause(.milliseconds(line == "ECHO 1" ? 500 : 5))
            await device.say("answer to \(line)\r\n", "OK\r\n")
        }
        try await bench.withSession(script: script) { (session, device) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...20 {
                    group.addTask { () async throws in
                        #expect(try await session.run("ECHO \(number)") == ["answer to ECHO \(number)"])
                    }
                }
                try await group.waitForAll()
            }
            #expect(device.packets.count == 20)
        }
    }

    @Test func collectingGivesEverythingUntilTheTimeIsUp() async throws {
        let script: ScriptedDevice.Script = { _, device in
            await device.say("OK\r\n")
            for number in 1...10 {
                await device.pause(.milliseconds(300))
                await device.say("found \(number)\r\n")
            }
        }
        try await bench.withSession(script: script) { (session, _) async throws in
            let lines = try await session.run(
                "AT+SCAN", timeout: .seconds(2), responseMode: .collectUntilTimeout)
            #expect(lines == (1...6).map { "found \($0)" })
        }
    }

    @Test func aDeviceWithoutFinalLinesAnswersUntilItFallsSilent() async throws {
        let script: ScriptedDevice.Script = { line, device in
            await device.say("you said \(line)\n")
            await device.pause(.milliseconds(200))
            await device.say("and that was it\n")
        }
        let profile = DeviceProfile.nordicUART
        try await bench.withSession(profile, script: script) { (session, _) async throws in
            #expect(try await session.run("hello") == ["you said hello", "and that was it"])
        }
    }

    @Test func aPromptEndsAnAnswer() async throws {
        let script: ScriptedDevice.Script = { line, device in await device.say("\(line)\r41 0C\r", "\r>") }
        let format = LineFormat(sentEnd: "\r", prompt: ">")
        let profile = DeviceProfile.nordicUART.speaking(.lines(format, .elm327))
        try await bench.withSession(profile, script: script) { (session, device) async throws in
            #expect(try await session.run("010C") == ["41 0C"])
            #expect(device.packets == [Array("010C\r".utf8)])
        }
    }

    // MARK: Cancelling

    @Test(arguments: [0, 1, 20, 1_500, 3_001])
    func aCancelledCommandLeavesTheChannelUsable(milliseconds: Int) async throws {
        let bench = Bench(conditions: Conditions(latency: .milliseconds(10)))
        try await bench.withSession { (session, device) async throws in
            let task = Task { try await session.run("AT+SLOW") }
            if milliseconds > 0 { await device.pause(.milliseconds(milliseconds)) }
            task.cancel()
            let result = await task.result
            if case .failure(let error as DeviceSessionError) = result {
                #expect(error.code == .cancelled)
            } else {
                #expect(milliseconds == 3_001)
            }
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
        }
    }

    @Test func aTaskThatIsCancelledAlreadySendsNothing() async throws {
        try await bench.withSession { (session, device) async throws in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await session.run("AT")
            }
            #expect(await failure { try await task.value }?.code == .cancelled)
            #expect(device.packets.isEmpty)
            #expect(try await session.run("AT") == [])
        }
    }

    @Test func aCancelledCommandInTheQueueHarmsNoOther() async throws {
        try await bench.withSession { (session, device) async throws in
            let first = Task { try await session.run("AT+SLOW") }
            await device.pause(.milliseconds(1))
            let second = Task { try await session.run("AT") }
            let third = Task { try await session.run("AT+VERSION") }
            await device.pause(.milliseconds(1))
            second.cancel()
            #expect(await failure { try await second.value }?.code == .cancelled)
            #expect(try await first.value == ["slow"])
            #expect(try await third.value == ["1.2.3"])
            #expect(!device.packets.contains(Array("AT\r\n".utf8)))
        }
    }

    // MARK: Exclusive sessions

    @Test func nothingGetsInBetweenInAnExclusiveSession() async throws {
        try await bench.withSession { (session, device) async throws in
            let other = Locked<Task<[String], any Error>?>(nil)
            try await session.withExclusiveSession { () async throws in
                #expect(try await session.run("AT+SPLIT") == ["first", "second"])
                other.withLock { $0 = Task.detached { try await session.run("AT") } }
                await device.pause(.seconds(1))
                #expect(try await session.run("AT+VERSION") == ["1.2.3"])
            }
            _ = try await other.withLock { $0 }?.value
            let sent = device.packets.map { String(decoding: $0, as: UTF8.self) }
            #expect(sent == ["AT+SPLIT\r\n", "AT+VERSION\r\n", "AT\r\n"])
        }
    }

    @Test func anExclusiveSessionInsideAnotherIsAnError() async throws {
        try await bench.withSession { (session, _) async throws in
            try await session.withExclusiveSession { () async throws in
                let error = await failure { try await session.withExclusiveSession { 1 } }
                #expect(error?.code == .exclusiveMisuse)
                #expect(try await session.run("AT") == [])
            }
            #expect(try await session.withExclusiveSession { try await session.run("AT") } == [])
        }
    }

    @Test func aSecondExclusiveSessionBesideOneIsAnError() async throws {
        try await bench.withSession { (session, _) async throws in
            try await session.withExclusiveSession { () async throws in
                let other = Task.detached { try await session.withExclusiveSession { 1 } }
                #expect(await failure { try await other.value }?.code == .exclusiveMisuse)
            }
        }
    }

    @Test func aTaskThatOutlivesItsExclusiveSessionIsAnError() async throws {
        try await bench.withSession { (session, device) async throws in
            let late = Locked<Task<[String], any Error>?>(nil)
            try await session.withExclusiveSession { () async throws in
                let task = Task {
                    await device.pause(.seconds(1))
                    return try await session.run("AT")
                }
                late.withLock { $0 = task }
            }
            let task = try #require(late.withLock { $0 })
            #expect(await failure { try await task.value }?.code == .exclusiveMisuse)
        }
    }

    @Test func waitingInsideForACallFromOutsideIsAnErrorAndNoDeadlock() async throws {
        try await bench.withSession { (session, _) async throws in
            try await session.withExclusiveSession { () async throws in
                let outside = Task.detached { try await session.run("AT") }
                #expect(await failure { try await outside.value }?.code == .busy)
            }
            #expect(try await session.run("AT") == [])
        }
    }

    @Test func anExclusiveSessionEndsWithWhatItsBodyThrows() async throws {
        struct Mine: Error {}
        try await bench.withSession { (session, _) async throws in
            await #expect(throws: Mine.self) { try await session.withExclusiveSession { throw Mine() } }
            #expect(try await session.run("AT") == [])
        }
    }

    // MARK: Wrong calls

    @Test(arguments: ["two\nlines", "two\r\nlines", String(repeating: "x", count: 5_000)])
    func aLineThatIsNoneIsRefused(line: String) async throws {
        try await bench.withSession { (session, device) async throws in
            #expect(await failure { try await session.run(line) } != nil)
            #expect(await failure { try await session.sendNoWait(line) } != nil)
            #expect(device.packets.isEmpty)
        }
    }

    @Test func beforeThereIsALinkAllCallsSaySo() async throws {
        let session = try bench.session()
        #expect(await failure { try await session.run("AT") }?.code == .notConnected)
        #expect(await failure { try await session.sendNoWait("AT") }?.code == .notConnected)
        #expect(await failure { try await session.sendPayload([1]) }?.code == .notConnected)
        #expect(await failure { try await session.withExclusiveSession { 1 } }?.code == .notConnected)
        #expect(await failure { try await session.refreshFacts() }?.code == .notConnected)
        await session.teardown()
    }
}
