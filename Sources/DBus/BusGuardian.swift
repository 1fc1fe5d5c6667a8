// SPDX-License-Identifier: MIT

import CDBus
import Glibc

/// Ends a private bus whose owner was killed before it could do so itself.
///
/// A shell that waits for the end of a pipe. We hold the other end, so the pipe ends with our process, however that
/// goes; a guardian that is released before is ended first, and does nothing.
///
/// `@unchecked Sendable`: both are constant.
final class BusGuardian: @unchecked Sendable {
    private let shell: pid_t
    private let pipe: Int32

    /// - Returns: nil if there is no shell or no pipe: the bus then works unguarded.
    init?(process: pid_t, directory: String) {
        var pipes: [Int32] = [-1, -1]
        guard pipe2(&pipes, O_CLOEXEC) == 0 else { return nil }
        defer { close(pipes[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipes[0], 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        let script = #"read -r _; kill -KILL "$1"; rm -f "$2/bus" "$2/bus.conf"; rmdir "$2""#
        let words = ["sh", "-c", script, "sh", String(process), directory]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=/usr/bin:/bin"), nil]
        defer { environment.forEach { free($0) } }
        var child: pid_t = 0
        guard posix_spawn(&child, "/bin/sh", &actions, &attributes, &arguments, &environment) == 0 else {
            close(pipes[1])
            return nil
        }
        shell = child
        pipe = pipes[1]
    }

    deinit {
        kill(shell, SIGKILL)
        var status: Int32 = 0
        while waitpid(shell, &status, 0) < 0, errno == EINTR {}
        close(pipe)
    }
}
