// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// Many callers at once, who change their minds, on a link that is lost now and then: whoever gets an answer gets his
/// own, and everybody gets something.
@Suite(.timeLimit(.minutes(4))) struct CrowdedTests {
    /// SplitMix64 (Steele, Lea and Flood 2014).
    private struct Dice {
        var state: UInt64

        mutating func roll(_ sides: UInt64) -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
            return (z ^ z >> 31) % sides
        }
    }

    /// Answers within 200 ms, which is less than the channel's settling time.
    private static let script: ScriptedDevice.Script = { line, device in
        guard line.hasPrefix("ECHO ") else { return }
        let delay = line.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) % 200 }
        await device.pause(.milliseconds(delay))
        await device.say("\(line.dropFirst(5))\r\nO", "K\r\n")
    }

    @Test(arguments: 1...8) func everybodyGetsHisOwnAnswerOrAnError(seed: Int) async throws {
        let bench = Bench(conditions: Conditions(latency: .milliseconds(3), connectionTime: .milliseconds(50)))
        var configuration = DeviceSession.Configuration()
        configuration.reconnection = .attempts(50, initialPause: .milliseconds(500), factor: 1)
        let answered = Locked(0)
        try await bench.withSession(Bench.at, configuration, script: Self.script) { (session, _) async throws in
            let count = await withTaskGroup(of: Int.self) { group in
                for worker in 0..<6 {
                    group.addTask {
                        var dice = Dice(state: UInt64(seed * 100 + worker))
                        var done = 0
                        for number in 0..<25 {
                            let name = "\(worker)-\(number)"
                            let kind = dice.roll(6)
                            let task = Task { await Self.act(kind, name, session, answered) }
                            await bench.clock.sleepQuietly(.milliseconds(Int(dice.roll(60))))
                            if dice.roll(4) == 0 { task.cancel() }
                            await task.value
                            done += 1
                        }
                        return done
                    }
                }
                group.addTask {
                    for _ in 0..<3 {
                        await bench.clock.sleepQuietly(.milliseconds(1_700))
                        bench.medium.drop(between: bench.phone, and: bench.gadget)
                    }
                    return 0
                }
                return await group.reduce(0, +)
            }
            #expect(count == 150)
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
            #expect(try await session.run("ECHO last") == ["last"])
        }
        #expect(bench.medium.links.isEmpty)
        #expect(answered.withLock { $0 } > 20)
    }

    private static func act(_ kind: UInt64, _ name: String, _ session: DeviceSession, _ answered: Locked<Int>) async {
        do {
            switch kind {
            case 0: try await session.sendPayload(Array("NOTHING\r\n".utf8))
            case 1: try await session.sendNoWait("NOTHING")
            case 2:
                try await session.withExclusiveSession {
                    for part in ["a", "b"] { try await ask(name + part, session, answered) }
                }
            case 3:
                let lines = try await session.run("ECHO \(name)", timeout: .milliseconds(30))
                #expect(lines == [name])
            default:
                try await ask(name, session, answered)
            }
        } catch is DeviceSessionError {
            // Busy, timed out, lost, cancelled: an answer, too.
            if Task.isCancelled { return }
            await session.waitUntilReady()
        } catch {
            Issue.record("\(error)")
        }
    }

    private static func ask(_ name: String, _ session: DeviceSession, _ answered: Locked<Int>) async throws {
        let lines = try await session.run("ECHO \(name)")
        #expect(lines == [name])
        answered.withLock { $0 += 1 }
    }
}

extension DeviceSession {
    /// Returns also when it never will be.
    fileprivate func waitUntilReady() async {
        do { try await waitUntil(.commandReady, timeout: .seconds(30)) } catch {}
    }
}
