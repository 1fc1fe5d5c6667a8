// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// The program itself, as a process, with its output in lines.
final class RunningProgram: Sendable {
    private struct State {
        var output: [String] = []
        var errors: [String] = []
        var waiters: [(text: String, resume: CheckedContinuation<Bool, Never>)] = []
        var hasEnded = false
    }

    private let process: ChildProcess
    private let state: Guarded<State>

    /// Where the build has put it: beside the tests.
    static let path: String = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let tests = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return tests.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/nearby"
    }()

    convenience init(_ arguments: [String]) throws {
        try self.init(program: Self.path, arguments)
    }

    /// A pipeline; `$0` is the program.
    convenience init(shell script: String, _ arguments: [String]) throws {
        try self.init(program: "/bin/bash", ["-c", script, Self.path] + arguments)
    }

    private init(program: String, _ arguments: [String]) throws {
        let state = Guarded(State())
        self.state = state
        process = try ChildProcess(program, arguments) { line, isError in
            let found = state.withLock { state in
                if isError { state.errors.append(line) } else { state.output.append(line) }
                guard !isError else { return [CheckedContinuation<Bool, Never>]() }
                defer { state.waiters.removeAll { line.contains($0.text) } }
                return state.waiters.filter { line.contains($0.text) }.map(\.resume)
            }
            for waiter in found { waiter.resume(returning: true) }
        }
        Task { [process, state] in
            _ = await process.ended()
            let waiters = state.withLock { state in
                state.hasEnded = true
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.resume.resume(returning: false) }
        }
    }

    var output: [String] { state.withLock { $0.output } }
    var errors: [String] { state.withLock { $0.errors } }

    /// Waits for a line of standard output with this text; false if the program ends without one.
    func prints(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer: Bool? = state.withLock { state in
                if state.output.contains(where: { $0.contains(text) }) { return true }
                if state.hasEnded { return false }
                state.waiters.append((text, continuation))
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// What a process listing shows of it.
    func commandLine() throws -> String {
        let descriptor = open("/proc/\(process.id)/cmdline", O_RDONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)).map { $0 == 0 ? 32 : $0 }, as: UTF8.self)
    }

    func send(_ signal: Int32) { kill(process.id, signal) }

    /// Its exit status as a shell has it.
    func ended() async -> Int32 { await process.ended() }
}

/// `nearby simulate` on a bus of its own.
struct SimulatedBus {
    let address: String
    private let program: RunningProgram

    init(adapters: Int = 2, device: Bool = false) async throws {
        let more = device ? ["--device"] : []
        program = try RunningProgram(["simulate", "--json", "--adapters", "\(adapters)"] + more)
        let isReady = await program.prints("simulating")
        try #require(isReady, "\(program.errors)")
        let line = try JSONObject(parsing: [UInt8]((program.output.first ?? "").utf8))
        address = try #require(line.string("bus"))
    }

    /// Its exit status.
    func stop() async -> Int32 {
        program.send(SIGTERM)
        return await program.ended()
    }
}
