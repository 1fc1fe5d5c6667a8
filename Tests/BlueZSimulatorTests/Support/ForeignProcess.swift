// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

/// A child process, with what it printed.
///
/// `@unchecked Sendable`: everything mutable is guarded by `lock`; the reader threads own their descriptors.
final class ForeignProcess: @unchecked Sendable {
    /// Lines of standard output, as they come.
    let lines = Log<String>()
    /// Lines of standard error.
    let errors = Log<String>()
    private let exits = Log<Int32>()
    private let pid: pid_t

    struct SpawnFailure: Error { let code: Int32 }

    init(_ executable: String, _ arguments: [String], environment extra: [String: String]) throws {
        let out = try Self.pipe()
        let err = try Self.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, out.write, 1)
        posix_spawn_file_actions_adddup2(&actions, err.write, 2)
        // Swift's worker threads block most signals, and a child inherits that: it would never see SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var variables: [String] = []
        var pointer = environ
        while let entry = pointer.pointee {
            let text = String(cString: entry)
            if !extra.keys.contains(where: { text.hasPrefix($0 + "=") }) { variables.append(text) }
            pointer += 1
        }
        variables += extra.map { "\($0.key)=\($0.value)" }
        var argv = ([executable] + arguments).map { strdup($0) } + [nil]
        var envp = variables.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var child = pid_t()
        let code = posix_spawn(&child, executable, &actions, &attributes, &argv, &envp)
        close(out.write)
        close(err.write)
        guard code == 0 else {
            close(out.read)
            close(err.read)
            throw SpawnFailure(code: code)
        }
        self.pid = child
        Self.read(out.read, into: lines, then: {})
        let exits = exits
        let pid = child
        Self.read(err.read, into: errors) {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            exits.add(status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f))
        }
    }

    /// Waits until a line of standard output is this, or begins so.
    func line(beginning prefix: String) async throws -> String {
        do {
            return try await lines.wait { $0.hasPrefix(prefix) }
        } catch {
            Issue.record("the peer said: \(lines.all) \(errors.all)")
            throw error
        }
    }

    /// Waits for the end: the exit status, or minus the signal.
    func exit(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Int32 {
        do {
            return try await exits.wait(sourceLocation: sourceLocation) { _ in true }
        } catch {
            Issue.record("the peer said: \(lines.all) \(errors.all)", sourceLocation: sourceLocation)
            throw error
        }
    }

    func terminate() {
        if exits.count == 0 { kill(pid, SIGTERM) }
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        // Not a pipe: a socket pair is closed on exec from the start, so no child of another test can keep it open.
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SpawnFailure(code: errno) }
        return (ends[0], ends[1])
    }

    private static func read(_ descriptor: Int32, into log: Log<String>, then: @escaping @Sendable () -> Void) {
        final class Job: Sendable {
            let descriptor: Int32
            let log: Log<String>
            let then: @Sendable () -> Void
            init(_ descriptor: Int32, _ log: Log<String>, _ then: @escaping @Sendable () -> Void) {
                self.descriptor = descriptor
                self.log = log
                self.then = then
            }
            func run() {
                var pending: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = Glibc.read(descriptor, &buffer, buffer.count)
                    guard count > 0 else { break }
                    pending += buffer[..<count]
                    while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                        log.add(String(decoding: pending[..<end], as: UTF8.self))
                        pending.removeSubrange(...end)
                    }
                }
                if !pending.isEmpty { log.add(String(decoding: pending, as: UTF8.self)) }
                close(descriptor)
                then()
            }
        }
        let job = Unmanaged.passRetained(Job(descriptor, log, then))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, job.toOpaque())
        if code == 0 { pthread_detach(thread) } else { job.release() }
    }
}

/// The Python environment that `scripts/python-env.sh` makes, and the peers in `Tests/Python`.
enum Python {
    /// Whether the environment is there; the suites that need it are skipped with this as the reason otherwise.
    static let isAvailable = interpreter != nil

    static let interpreter: String? = {
        let home = getenv("HOME").map { String(cString: $0) } ?? ""
        let cache = getenv("XDG_CACHE_HOME").map { String(cString: $0) } ?? "\(home)/.cache"
        let path = "\(cache)/nearbydiscoverykit/python/bin/python3"
        return access(path, X_OK) == 0 ? path : nil
    }()

    static func peer(_ name: String, from file: String = #filePath) -> String {
        let parts = file.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/Python/" + name
    }

    static func run(_ name: String, _ arguments: [String] = [], bus: PrivateBus) throws -> ForeignProcess {
        try ForeignProcess(
            interpreter ?? "/usr/bin/false", [peer(name)] + arguments,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address, "PYTHONUNBUFFERED": "1"])
    }
}
