// SPDX-License-Identifier: MIT

import Glibc

/// Threads for calls that block: a signal's arrival, a terminal, a child process.
enum SystemThread {
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// - Returns: whether the system had a thread to give.
    @discardableResult
    static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        let pointer = Unmanaged.passRetained(Body(body)).toOpaque()
        var thread = pthread_t()
        let result = pthread_create(
            &thread,
            nil,
            { pointer in
                if let pointer { Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run() }
                return nil
            },
            pointer
        )
        guard result == 0 else {
            Unmanaged<Body>.fromOpaque(pointer).release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
