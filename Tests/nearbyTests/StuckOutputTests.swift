// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

@testable import nearby

/// A program whose output nobody reads waits in the middle of a write, and has to be ended all the same.
@Suite(.timeLimit(.minutes(2))) struct StuckOutputTests {
    /// A pipe of one page whose reader does not read.
    private final class StuckPipe: Sendable {
        private let ends: (read: Int32, write: Int32)
        /// Bytes that fit.
        let room: Int

        init() throws {
            var ends: [Int32] = [-1, -1]
            let isOpen = pipe(&ends) == 0
            try #require(isOpen)
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            self.ends = (ends[0], ends[1])
            // F_SETPIPE_SZ, which Swift does not import.
            room = Int(fcntl(ends[1], 1_031, 1))
        }

        deinit {
            close(ends.read)
            close(ends.write)
        }

        /// Where another process finds it.
        var path: String { "/proc/\(getpid())/fd/\(ends.write)" }

        /// Waits until there is something in it. What is larger than the pipe is being written then, and stays so.
        func hasBegun() async -> Bool {
            await withCheckedContinuation { continuation in
                let isStarted = DetachedThread.start { [self] in
                    var source = pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)
                    continuation.resume(returning: poll(&source, 1, 60_000) == 1)
                }
                if !isStarted { continuation.resume(returning: false) }
            }
        }
    }

    /// The first signal cancels what is under way, which the program does not get to.
    @Test(arguments: [[SIGTERM], [SIGTERM, SIGINT]])
    func aSignalEndsItWithinItsTimeAndASecondOneAtOnce(signals: [Int32]) async throws {
        let output = try StuckPipe()
        let size = 20_000
        try #require((1..<size).contains(output.room))
        let bus = try await SimulatedBus()
        let payload = "k=" + String(repeating: "x", count: size)
        let common = ["--app-id", "com.example.test", "--bus", bus.address]
        let host = try RunningProgram(["host", "--json", "--adapter", "hci0", "--payload", payload] + common)
        #expect(await host.prints("serving"), "\(host.errors)")
        let join = try RunningProgram(
            shell: #"exec "$0" "${@:2}" > "$1""#, [output.path, "join", "--json", "--adapter", "hci1"] + common)
        #expect(await output.hasBegun(), "\(join.errors)")
        // Of two kinds: two of one kind are one to a process that has not taken the first yet.
        let began = ContinuousClock.now
        for signal in signals { join.send(signal) }
        let limit = Task {
            try await Task.sleep(for: Limits.cleanUp * 3)
            join.send(SIGKILL)
        }
        let status = await join.ended()
        limit.cancel()
        #expect(signals.map { 128 + $0 }.contains(status), "\(join.errors)")
        if signals.count > 1 { #expect(began.duration(to: .now) < Limits.cleanUp) }
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        #expect(await bus.stop() == 143)
    }
}
