// SPDX-License-Identifier: MIT

package import BluetoothLE

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// What a socket waits for.
package struct SocketInterest: Sendable {
    package var descriptor: Int32
    package var reads: Bool
    package var writes: Bool
    /// Whether to tell that the peer has shut its side. Who reads learns that by itself.
    package var watchesPeer: Bool
    package var deadline: ContinuousClock.Instant?

    package init(
        descriptor: Int32,
        reads: Bool,
        writes: Bool,
        watchesPeer: Bool = false,
        deadline: ContinuousClock.Instant? = nil
    ) {
        self.descriptor = descriptor
        self.reads = reads
        self.writes = writes
        self.watchesPeer = watchesPeer
        self.deadline = deadline
    }
}

/// A socket that the loop serves. All calls come from the loop's thread.
package protocol PolledSocket: AnyObject, Sendable {
    /// What to wait for; `nil`: nothing any more. The loop forgets the socket then.
    func interest() -> SocketInterest?

    /// The descriptor is ready, or the deadline has passed.
    func proceed(reads: Bool, writes: Bool)

    /// The peer has shut its side. Told for as long as the interest watches it.
    func peerHasLeft()

    /// The loop no longer knows the descriptor: now it may be closed.
    func retire()
}

extension PolledSocket {
    package func peerHasLeft() {}
}

/// One thread for all sockets of the process, on `poll`: it runs wherever Swift runs, and tens of sockets are few.
///
/// It sleeps while nothing happens, without wake-ups.
package final class SocketLoop: Sendable {
    package static let shared = SocketLoop()

    /// A pipe: what is written to it wakes the loop.
    package typealias Bell = (reading: Int32, writing: Int32)

    private struct State {
        var sockets: [any PolledSocket] = []
        /// Made with the first socket, and kept for good.
        var bell: Bell?
        var isRunning = false
        /// Somebody has rung since the loop last looked.
        var isRung = false
    }

    private let state = Locked(State())
    private let startThread: @Sendable (@escaping @Sendable () -> Void) -> Bool
    private let makeBell: @Sendable () -> Bell?

    /// - Parameters:
    ///   - startThread: Runs a body on a thread of its own, and returns whether there was one to be had.
    ///   - makeBell: `nil` where the system has no descriptors for it.
    package init(
        startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = { SocketSystem.startThread($0) },
        makeBell: @escaping @Sendable () -> Bell? = { SocketSystem.makePipe() }
    ) {
        self.startThread = startThread
        self.makeBell = makeBell
    }

    /// - Throws: `serviceUnavailable` where the system has no thread for the loop, or no descriptors for what wakes it.
    ///   The socket's descriptor is the caller's to close then; the next socket tries again.
    package func add(_ socket: any PolledSocket) throws(BluetoothError) {
        // Under the lock, so that a second socket does not count on a thread that is not to come. The thread waits for
        // the lock itself before it does anything.
        let failure = state.withLock { state -> BluetoothError? in
            // A loop without a bell would sleep through whatever is sent.
            guard let bell = state.bell ?? makeBell() else { return .noDescriptors }
            state.bell = bell
            if !state.isRunning { state.isRunning = startThread { [self] in run(bell) } }
            guard state.isRunning else { return .noThread }
            state.sockets.append(socket)
            return nil
        }
        if let failure { throw failure }
        ring()
    }

    /// Makes the loop ask every socket for its interest again.
    package func ring() {
        let bell = state.withLock { state in
            defer { state.isRung = true }
            return state.isRung ? nil : state.bell
        }
        guard let bell else { return }
        var byte: UInt8 = 0
        _ = write(bell.writing, &byte, 1)
    }

    private func run(_ bell: Bell) {
        while true {
            let sockets = state.withLock { state in
                state.isRung = false
                return state.sockets
            }
            var polled = [pollfd(fd: bell.reading, events: Int16(POLLIN), revents: 0)]
            var interested: [(socket: any PolledSocket, interest: SocketInterest)] = []
            var retired: [any PolledSocket] = []
            for socket in sockets {
                guard let interest = socket.interest() else {
                    retired.append(socket)
                    continue
                }
                let events =
                    (interest.reads ? Int16(POLLIN) : 0) | (interest.writes ? Int16(POLLOUT) : 0)
                    | (interest.watchesPeer ? SocketSystem.peerHasLeft : 0)
                polled.append(pollfd(fd: interest.descriptor, events: events, revents: 0))
                interested.append((socket, interest))
            }
            forget(retired)
            let wait = Self.milliseconds(until: interested.compactMap(\.interest.deadline).min())
            _ = poll(&polled, nfds_t(polled.count), wait)
            if polled[0].revents != 0 { drain(bell) }
            let now = ContinuousClock.now
            for (entry, (socket, interest)) in zip(polled.dropFirst(), interested) {
                let failed = entry.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
                let reads = failed || entry.revents & Int16(POLLIN) != 0
                let writes = failed || entry.revents & Int16(POLLOUT) != 0
                let isDue = interest.deadline.map { $0 <= now } ?? false
                if entry.revents & SocketSystem.peerHasLeft != 0 { socket.peerHasLeft() }
                if reads || writes || isDue { socket.proceed(reads: reads, writes: writes) }
            }
        }
    }

    private func forget(_ retired: [any PolledSocket]) {
        guard !retired.isEmpty else { return }
        state.withLock { state in
            state.sockets.removeAll { socket in retired.contains { $0 === socket } }
        }
        for socket in retired { socket.retire() }
    }

    private func drain(_ bell: Bell) {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(bell.reading, &bytes, bytes.count) > 0 {}
    }

    /// Rounded up, so that the deadline has passed when `poll` returns; -1 waits for ever.
    private static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return 0 }
        return Int32(min(left / .milliseconds(1), 3_600_000).rounded(.up))
    }
}

extension BluetoothError {
    fileprivate static let noThread = BluetoothError(
        .serviceUnavailable, "the system has no thread to give", advice: "Are there too many processes?")
    fileprivate static let noDescriptors = BluetoothError(
        .serviceUnavailable, "the system has no file descriptors to give", advice: "Are too many files open?")
}
