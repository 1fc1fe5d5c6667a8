// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

@testable import nearby

@Suite(.timeLimit(.minutes(2))) struct RuntimeTests {
    /// Runs a body on a command loop whose thread is one of its own.
    private func onLoop<Value: Sendable>(_ body: @escaping @Sendable (CommandLoop) async -> Value) async -> Value {
        let loop = CommandLoop()
        DetachedThread.start { loop.run() }
        let value = await Task(executorPreference: loop) { await body(loop) }.value
        loop.stop()
        return value
    }

    @Test func timersFireInTheOrderOfTheirDeadlines() async {
        let order = await onLoop { loop in
            let fired = Guarded<[Int]>([])
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            loop.schedule(after: .milliseconds(20)) {
                fired.withLock { $0.append(2) }
                continuation.finish()
            }
            loop.schedule(after: .milliseconds(10)) { fired.withLock { $0.append(1) } }
            let cancel = loop.schedule(after: .milliseconds(5)) { fired.withLock { $0.append(0) } }
            cancel()
            for await _ in stream {}
            return fired.withLock { $0 }
        }
        #expect(order == [1, 2])
    }

    /// Before the sleep has begun, and while it lasts: the loop's timers come after its jobs.
    @Test(arguments: [false, true])
    func cancellingEndsASleep(isAsleep: Bool) async {
        let began = Monitor.now
        await onLoop { loop in
            let task = Task(executorPreference: loop) { await loop.sleep(for: .seconds(20)) }
            if isAsleep { loop.schedule(after: .zero) { task.cancel() } } else { task.cancel() }
            await task.value
        }
        #expect(Monitor.now - began < .seconds(20))
    }

    @Test func aTimerCancelsWork() async {
        let began = Monitor.now
        let (value, isOver) = await onLoop { loop in
            let limit = TimeLimit(.milliseconds(10), on: loop)
            let value = await limit.run {
                await loop.sleep(for: .seconds(20))
                return Task.isCancelled
            }
            return (value, limit.isOver)
        }
        #expect(value && isOver && Monitor.now - began < .seconds(20))
    }

    @Test func theFirstReasonToStopCounts() {
        let interruption = Interruption()
        let cancelled = Guarded(0)
        interruption.onStop { cancelled.withLock { $0 += 1 } }
        #expect(interruption.stop(.terminated))
        #expect(!interruption.stop(.interrupted))
        #expect(interruption.code == .terminated)
        #expect(cancelled.withLock { $0 } == 1)
        interruption.onStop { cancelled.withLock { $0 += 1 } }
        #expect(cancelled.withLock { $0 } == 2)
    }

    @Test func linesAreBounded() {
        var splitter = LineSplitter()
        #expect(splitter.take("a\nb".utf8) == ["a"])
        #expect(splitter.take("c\n\n".utf8) == ["bc", ""])
        #expect(splitter.rest() == nil)
        let long = splitter.take(repeatElement(UInt8(ascii: "x"), count: Limits.lineBytes + 1))
        #expect(long.map(\.utf8.count) == [Limits.lineBytes])
        #expect(splitter.rest() == "x")
    }

    @Test func aChildProcessGivesItsOutputAndStatus() async throws {
        let lines = Guarded<[String]>([])
        let child = try ChildProcess("/bin/sh", ["-c", "echo out; echo err >&2; printf rest; exit 3"]) {
            line, isError in
            lines.withLock { $0.append((isError ? "2:" : "1:") + line) }
        }
        #expect(await child.ended() == 3)
        #expect(lines.withLock { $0 }.sorted() == ["1:out", "1:rest", "2:err"])
        #expect(await child.ended() == 3)
    }

    @Test func aChildProcessCanBeEnded() async throws {
        let (started, isStarted) = AsyncStream.makeStream(of: Void.self)
        let child = try ChildProcess("/bin/sh", ["-c", "echo started; exec cat /dev/zero"]) { _, _ in isStarted.finish()
        }
        for await _ in started {}
        child.terminate()
        #expect(await child.ended() == 128 + SIGTERM)
        child.terminate()
    }

    @Test func aProgramThatIsNotThereIsAFailure() {
        #expect(throws: Failure.self) { try ChildProcess("/nonexistent/program", []) { _, _ in } }
    }

    @Test func aClosedPipeIsTold() {
        _ = signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        // Sockets, whose end does not wait for copies: a child of another test has them between its fork and its exec.
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        #expect(Console.Streams.write("x", to: ends[1]) == .written)
        shutdown(ends[0], Int32(SHUT_RDWR))
        close(ends[0])
        #expect(Console.Streams.write("x", to: ends[1]) == .closed)
        close(ends[1])
        #expect(Console.Streams.write("x", to: -1) == .failed)
    }
}
