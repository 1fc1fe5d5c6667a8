// SPDX-License-Identifier: MIT

import CDBus
import Glibc

/// A bus of one's own: a `dbus-daemon` that listens on a socket in a temporary directory, where anybody of the same user
/// may own any name. For simulations and tests. It ends with this object, and with our process.
///
/// `@unchecked Sendable`: `process` and `guardian` are guarded by `lock`, everything else is constant.
package final class PrivateBus: @unchecked Sendable {
    /// The address to open.
    package let address: String
    private let directory: String
    private let lock = Lock()
    private var process: pid_t = 0
    private var guardian: BusGuardian?

    private var socketPath: String { "\(directory)/bus" }
    private var configurationPath: String { "\(directory)/bus.conf" }

    package var busAddress: BusAddress { .address(address) }

    /// The daemon's process id; nil while it is stopped.
    package var processID: Int32? { lock.withLock { process == 0 ? nil : process } }

    /// Starts the daemon and waits until it listens, 10 s at most.
    ///
    /// - Throws: ``DBusError/Code/noBus`` if there is no `dbus-daemon` or it does not start.
    package init() async throws(DBusError) {
        var parent = getenv("TMPDIR").map { String(cString: $0) } ?? P_tmpdir
        // The path stands in XML and in a D-Bus address: only what needs no escape there, and fits a socket's name.
        if parent.utf8.count > 64 || !parent.utf8.allSatisfy(PrivateBus.isPlain) { parent = P_tmpdir }
        var template = Array("\(parent)/dbus-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw PrivateBus.failure("cannot make a directory in \(parent)")
        }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        address = "unix:path=\(directory)/bus"
        do throws(DBusError) {
            try writeConfiguration()
            try await restart()
        } catch {
            removeFiles()
            throw error
        }
    }

    deinit {
        stop()
        removeFiles()
    }

    /// Ends the daemon at once, as a crash would. Does nothing if it does not run.
    package func stop() {
        lock.withLock {
            guard process != 0 else { return }
            // First: once the daemon is gone, its number may be another process's.
            guardian = nil
            kill(process, SIGKILL)
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            process = 0
        }
    }

    /// Starts the daemon again at the same address, and waits until it listens, 10 s at most. Stops it first if it runs.
    package func restart() async throws(DBusError) {
        let result: Result<Void, DBusError> = await withCheckedContinuation { continuation in
            let isRunning = DetachedThread.start {
                do throws(DBusError) {
                    continuation.resume(returning: .success(try self.relaunch()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            if !isRunning {
                continuation.resume(returning: .failure(DBusError(.noBus, "no thread to start a bus with")))
            }
        }
        try result.get()
    }

    /// Blocks until the daemon listens.
    private func relaunch() throws(DBusError) {
        stop()
        unlink(socketPath)
        var pipes: [Int32] = [-1, -1]
        guard pipe2(&pipes, O_CLOEXEC) == 0 else { throw PrivateBus.failure("no pipe") }
        defer { close(pipes[0]) }
        do throws(DBusError) {
            try launch(printingTo: pipes[1])
        } catch {
            close(pipes[1])
            throw error
        }
        close(pipes[1])
        guard PrivateBus.reads(pipes[0]) else {
            stop()
            throw DBusError(.noBus, "dbus-daemon does not start")
        }
    }

    /// Refuses calls of these methods of the bus itself, once it has been told to read its configuration again
    /// (`ReloadConfig`).
    package func refuse(_ members: [String]) throws(DBusError) {
        try writeConfiguration(refusing: members)
    }

    private func launch(printingTo descriptor: Int32) throws(DBusError) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, descriptor, 3)
        // Not ours: whoever reads our output would wait for the daemon to end too. And it complains there about
        // limits that it may not raise, which mean nothing to a small bus.
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A process group of its own, so that Ctrl-C reaches the program first and not its bus; no inherited mask.
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        let words = [
            "dbus-daemon", "--config-file=\(configurationPath)", "--print-address=3", "--nofork", "--nopidfile",
            "--nosyslog",
        ]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [nil]
        var child: pid_t = 0
        let status = posix_spawnp(&child, "dbus-daemon", &actions, &attributes, &arguments, &environment)
        guard status == 0 else {
            throw DBusError(
                .noBus, "cannot start dbus-daemon: \(String(cString: strerror(status)))",
                advice: "install the package that has it (Debian: dbus-daemon)")
        }
        let guardian = BusGuardian(process: child, directory: directory)
        lock.withLock {
            process = child
            self.guardian = guardian
        }
    }

    /// Whether the daemon has printed its address, and so listens, within 10 s.
    private static func reads(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        var byte: UInt8 = 0
        let deadline = LoopCore.now() + 10_000_000_000
        while true {
            let now = LoopCore.now()
            guard now < deadline else { return false }
            let ready = poll(&entry, 1, Int32((deadline - now) / 1_000_000) + 1)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0, read(descriptor, &byte, 1) == 1 else { return false }
            if byte == UInt8(ascii: "\n") { return true }
        }
    }

    /// What a message may hold stays what it is on a system bus, the daemon's default.
    private func writeConfiguration(refusing members: [String] = []) throws(DBusError) {
        let bus = StandardInterface.bus
        let refusals = members.map {
            "    <deny send_destination=\"\(bus)\" send_interface=\"\(bus)\" send_member=\"\($0)\"/>\n"
        }
        let text = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>private</type>
              <keep_umask/>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <policy context="default">
                <allow send_destination="*"/>
                <allow receive_sender="*"/>
                <allow own="*"/>
            \(refusals.joined())  </policy>
              <limit name="max_replies_per_connection">50000</limit>
              <limit name="max_match_rules_per_connection">50000</limit>
              <limit name="max_completed_connections">1000</limit>
              <limit name="max_connections_per_user">1000</limit>
            </busconfig>

            """
        guard let file = fopen(configurationPath, "we") else { throw PrivateBus.failure("no configuration file") }
        let written = fputs(text, file)
        guard fclose(file) == 0, written >= 0 else { throw PrivateBus.failure("no configuration file") }
    }

    private func removeFiles() {
        unlink(socketPath)
        unlink(configurationPath)
        rmdir(directory)
    }

    private static func failure(_ what: String) -> DBusError {
        DBusError(.noBus, "cannot start a private bus: \(what): \(String(cString: strerror(errno)))")
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "/"):
            true
        default:
            false
        }
    }
}
