// SPDX-License-Identifier: MIT

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The few system calls whose types differ between systems, and a descriptor's usual settings.
package enum SocketSystem {
    /// An error number of the system, with its words.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package let number: Int32

        package init(_ number: Int32) { self.number = number }

        package static var last: Failure { Failure(errno) }

        package var description: String { String(cString: strerror(number)) }
    }

    static var stream: Int32 {
        #if canImport(Glibc)
        Int32(SOCK_STREAM.rawValue)
        #else
        SOCK_STREAM
        #endif
    }

    /// A new TCP socket, -1 where the system refuses. On Linux no child that starts at this moment inherits it: a listening
    /// one would keep its port from the next start.
    package static func open(_ family: Int32) -> Int32 {
        #if canImport(Glibc)
        socket(family, stream | Int32(SOCK_CLOEXEC.rawValue), 0)
        #elseif canImport(Musl)
        socket(family, stream | SOCK_CLOEXEC, 0)
        #else
        socket(family, stream, 0)
        #endif
    }

    static var sendFlags: Int32 {
        #if canImport(Darwin)
        0
        #else
        Int32(MSG_NOSIGNAL)
        #endif
    }

    /// What `poll` is asked for to tell that the peer has shut its side, also behind bytes that nobody reads; 0 where there
    /// is no such event. Swift's modules of the C libraries leave `POLLRDHUP` out.
    static var peerHasLeft: Int16 {
        #if os(Linux)
        // asm-generic/poll.h, which all of Swift's architectures use.
        0x2000
        #else
        0
        #endif
    }

    /// Non-blocking, not inherited, without Nagle's delay, never a SIGPIPE, and with an end where the peer vanishes.
    package static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        #if canImport(Darwin)
        set(descriptor, SOL_SOCKET, SO_NOSIGPIPE)
        #endif
        noticeVanishing(descriptor)
    }

    /// A machine that crashes or sleeps, and a cable that is pulled, say no goodbye. Without this a bridge would keep
    /// such a client's links and advertisements for hours, and a client would wait for such a bridge as long.
    private static func noticeVanishing(_ descriptor: Int32) {
        set(descriptor, SOL_SOCKET, SO_KEEPALIVE)
        #if canImport(Darwin)
        let idle = TCP_KEEPALIVE
        #else
        let idle = TCP_KEEPIDLE
        // Nobody is asked whether he is there while what was sent is under way.
        let unacknowledged = Int32(BridgeLimits.unacknowledged / .milliseconds(1))
        set(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, unacknowledged)
        #endif
        set(descriptor, Int32(IPPROTO_TCP), idle, Int32(BridgeLimits.keepAliveIdle / .seconds(1)))
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, Int32(BridgeLimits.keepAliveInterval / .seconds(1)))
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, Int32(BridgeLimits.keepAliveProbes))
    }

    /// Both ends non-blocking and not inherited; `nil` where the system refuses.
    static func makePipe() -> (reading: Int32, writing: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        return (ends[0], ends[1])
    }

    /// Under a name of its own: many a type here has a `close` of its own.
    package static func close(_ descriptor: Int32) {
        #if canImport(Darwin)
        _ = Darwin.close(descriptor)
        #elseif canImport(Musl)
        _ = Musl.close(descriptor)
        #else
        _ = Glibc.close(descriptor)
        #endif
    }

    static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32 = 1) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Whether the call is to be made again when the descriptor is ready.
    static func isTransient(_ number: Int32) -> Bool {
        number == EAGAIN || number == EWOULDBLOCK || number == EINTR
    }

    /// Runs a body on a thread of its own, for calls that block.
    ///
    /// - Returns: whether the system had a thread to give.
    @discardableResult
    static func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        final class Body {
            let run: @Sendable () -> Void
            init(_ run: @escaping @Sendable () -> Void) { self.run = run }
        }
        let pointer = Unmanaged.passRetained(Body(body)).toOpaque()
        #if canImport(Darwin)
        var thread: pthread_t?
        let result = pthread_create(
            &thread, nil,
            { pointer in
                Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run()
                return nil
            }, pointer)
        if result == 0, let thread { pthread_detach(thread) }
        #else
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { pointer in
                if let pointer { Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run() }
                return nil
            }, pointer)
        if result == 0 { pthread_detach(thread) }
        #endif
        if result != 0 { Unmanaged<Body>.fromOpaque(pointer).release() }
        return result == 0
    }
}
