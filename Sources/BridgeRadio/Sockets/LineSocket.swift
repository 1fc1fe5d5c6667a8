// SPDX-License-Identifier: MIT

package import BluetoothLE

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// One TCP connection that carries lines both ways, with bounds on all that it holds.
package final class LineSocket: PolledSocket {
    package enum Input: Sendable, Hashable {
        case line([UInt8])
        /// A line was longer than allowed. Nothing more is read.
        case tooLong
    }

    package struct Policy: Sendable {
        package var lineBytes = BridgeLimits.lineBytes
        package var unreadLines = BridgeLimits.unreadLines
        package var unsentBytes = BridgeLimits.unsentBytes
        package var crowdedBytes = BridgeLimits.crowdedBytes
        /// `nil`: as fast as they come.
        package var rate: LineRate?
        /// What a peer is told last who does not read what it is sent.
        package var farewell: [UInt8] = []

        package init() {}
    }

    private enum Phase: Equatable {
        case open
        /// The peer has shut its side, and not all that it had sent is read. That still is; nothing more is sent.
        case left
        /// What is left is sent, then our side is shut; what comes in is thrown away.
        case closing(until: ContinuousClock.Instant, isShut: Bool)
        case closed
    }

    private struct State {
        var phase = Phase.open
        var input: LineBuffer
        var allowance: LineAllowance?
        /// Nothing is read before.
        var pausedUntil: ContinuousClock.Instant?
        var unread: [Input] = []
        var hasInputEnded = false
        var reader: CheckedContinuation<Input?, Never>?
        var output: [[UInt8]] = []
        /// What of the first line has been sent.
        var sent = 0
        var unsent = 0
        var wasOverrun = false
    }

    private let descriptor: Int32
    private let policy: Policy
    private let loop: SocketLoop
    private let state: Locked<State>
    private let end = Latch<Void>()

    /// Takes the descriptor over, and closes it where it throws.
    ///
    /// - Throws: `serviceUnavailable` where nothing would serve the socket.
    package init(
        descriptor: Int32,
        policy: Policy = Policy(),
        loop: SocketLoop = .shared
    ) throws(BluetoothError) {
        SocketSystem.prepare(descriptor)
        self.descriptor = descriptor
        self.policy = policy
        self.loop = loop
        let allowance = policy.rate.map { LineAllowance($0, at: .now) }
        state = Locked(State(input: LineBuffer(limit: policy.lineBytes), allowance: allowance))
        do throws(BluetoothError) {
            try loop.add(self)
        } catch {
            SocketSystem.close(descriptor)
            throw error
        }
    }

    // MARK: - Reading

    /// The next line; `nil` once the connection has ended, or the task is cancelled. For one reader.
    package func next() async -> Input? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (result, mustRing) = state.withLock { state -> (Input??, Bool) in
                    if !state.unread.isEmpty {
                        let wasFull = state.unread.count >= policy.unreadLines
                        return (.some(state.unread.removeFirst()), wasFull)
                    }
                    if state.hasInputEnded || state.reader != nil || Task.isCancelled { return (.some(nil), false) }
                    state.reader = continuation
                    return (nil, false)
                }
                if mustRing { loop.ring() }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            state.withLock { state in
                defer { state.reader = nil }
                return state.reader
            }?.resume(returning: nil)
        }
    }

    // MARK: - Writing

    /// Bytes that wait for the peer to read.
    package var unsentBytes: Int { state.withLock { $0.unsent } }

    /// Whether the peer was cut off because it let too much wait.
    package var wasOverrun: Bool { state.withLock { $0.wasOverrun } }

    /// Queues a line, with its end.
    ///
    /// A peer that lets more wait than the policy allows is told the farewell, and cut off.
    ///
    /// - Parameter isDispensable: Left out where much is waiting already.
    /// - Returns: whether it was queued.
    @discardableResult
    package func send(_ line: [UInt8], isDispensable: Bool = false) -> Bool {
        let (isQueued, mustRing, isOpen) = state.withLock { state -> (Bool, Bool, Bool) in
            guard state.phase == .open, !line.isEmpty else { return (false, false, state.phase == .open) }
            if isDispensable, state.unsent > policy.crowdedBytes { return (false, false, true) }
            guard state.unsent + line.count <= policy.unsentBytes else {
                state.wasOverrun = true
                close(&state, last: policy.farewell, dropping: true)
                return (false, true, false)
            }
            state.output.append(line)
            state.unsent += line.count
            // The loop is spared where the system takes all of it at once, which is nearly always.
            if state.output.count == 1 { flush(&state) }
            return (true, !state.output.isEmpty || state.phase != .open, state.phase == .open)
        }
        if !isOpen { end.set(()) }
        if mustRing { loop.ring() }
        return isQueued
    }

    /// Sends what is queued and this, and closes. Whoever reads gets no more lines.
    package func close(last: [UInt8] = []) {
        let reader = state.withLock { state -> CheckedContinuation<Input?, Never>? in
            if state.phase == .open || state.phase == .left { close(&state, last: last, dropping: false) }
            return endInput(&state, dropping: true)
        }
        reader?.resume(returning: nil)
        end.set(())
        loop.ring()
    }

    /// Waits until nothing more can be sent, whoever has closed, or the task is cancelled. For any number of tasks. What
    /// the peer had sent may still be read.
    ///
    /// That the peer has closed is known once it has been read, and on Linux also while nothing is. Behind more bytes
    /// than the system keeps for us it does not arrive before those are read.
    package func ended() async { await end.value(orWhenCancelled: ()) }

    private func close(_ state: inout State, last: [UInt8], dropping: Bool) {
        if dropping {
            state.output = state.sent > 0 ? Array(state.output.prefix(1)) : []
            state.unsent = (state.output.first?.count ?? 0) - state.sent
        }
        if !last.isEmpty {
            state.output.append(last)
            state.unsent += last.count
        }
        state.phase = .closing(until: .now.advanced(by: BridgeLimits.linger), isShut: false)
    }

    private func endInput(_ state: inout State, dropping: Bool) -> CheckedContinuation<Input?, Never>? {
        state.hasInputEnded = true
        if dropping { state.unread = [] }
        defer { state.reader = nil }
        return state.reader
    }

    // MARK: - The loop's calls

    package func interest() -> SocketInterest? {
        state.withLock { state in
            switch state.phase {
            case .closed:
                return nil
            case .closing(let until, let isShut):
                return SocketInterest(
                    descriptor: descriptor, reads: true, writes: !isShut || !state.output.isEmpty, deadline: until)
            case .open, .left:
                let hasRoom = !state.hasInputEnded && state.unread.count < policy.unreadLines
                let reads = hasRoom && state.pausedUntil == nil
                return SocketInterest(
                    descriptor: descriptor,
                    reads: reads,
                    writes: !state.output.isEmpty,
                    watchesPeer: !reads && state.phase == .open,
                    deadline: hasRoom ? state.pausedUntil : nil
                )
            }
        }
    }

    package func proceed(reads: Bool, writes: Bool) {
        var hasEnded = false
        let resumption = state.withLock { state -> (CheckedContinuation<Input?, Never>, Input?)? in
            defer { hasEnded = state.phase != .open }
            if let pause = state.pausedUntil, pause <= .now { state.pausedUntil = nil }
            if writes { flush(&state) }
            if case .closing(let until, let isShut) = state.phase {
                if state.output.isEmpty, !isShut {
                    shutdown(descriptor, Int32(SHUT_WR))
                    state.phase = .closing(until: until, isShut: true)
                }
                if until <= .now || reads && discard() { state.phase = .closed }
            } else if reads, state.phase == .open || state.phase == .left {
                receive(&state)
            }
            if state.phase == .closed {
                state.output = []
                state.unsent = 0
                if let reader = endInput(&state, dropping: false) { return (reader, nil) }
            }
            guard let reader = state.reader else { return nil }
            if !state.unread.isEmpty {
                state.reader = nil
                return (reader, state.unread.removeFirst())
            }
            guard state.hasInputEnded else { return nil }
            state.reader = nil
            return (reader, nil)
        }
        if hasEnded { end.set(()) }
        if let (reader, input) = resumption { reader.resume(returning: input) }
    }

    package func peerHasLeft() {
        state.withLock { state in
            if state.phase == .open { state.phase = .left }
        }
        end.set(())
    }

    package func retire() {
        SocketSystem.close(descriptor)
    }

    private func flush(_ state: inout State) {
        while let line = state.output.first {
            let count = line.withUnsafeBytes { bytes in
                Int(sendBytes(bytes.baseAddress?.advanced(by: state.sent), bytes.count - state.sent))
            }
            if count < 0 {
                if SocketSystem.isTransient(errno) { return }
                // The peer is gone. The loop ends the rest: whoever sends must not be called back.
                state.output = []
                state.unsent = 0
                state.sent = 0
                state.phase = .closing(until: .now, isShut: true)
                return
            }
            state.sent += count
            state.unsent -= count
            guard state.sent == line.count else { return }
            state.output.removeFirst()
            state.sent = 0
        }
    }

    private func sendBytes(_ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
        #if canImport(Darwin)
        Darwin.send(descriptor, bytes, count, SocketSystem.sendFlags)
        #elseif canImport(Musl)
        Musl.send(descriptor, bytes, count, SocketSystem.sendFlags)
        #else
        Glibc.send(descriptor, bytes, count, SocketSystem.sendFlags)
        #endif
    }

    /// One chunk at a time, so that a peer that sends much does not keep the others waiting.
    private func receive(_ state: inout State) {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count < 0, SocketSystem.isTransient(errno) { return }
        guard count > 0 else {
            // What the peer had sent before it went is still read; nothing more is sent.
            state.hasInputEnded = true
            state.phase = .closed
            return
        }
        let lines = state.input.take(chunk.prefix(count))
        state.unread += lines.map(Input.line)
        if state.input.isBroken {
            state.unread.append(.tooLong)
            state.hasInputEnded = true
        }
        if let pause = state.allowance?.spend(lines.count, at: .now) { state.pausedUntil = pause }
    }

    /// - Returns: whether the peer has closed its side, too.
    private func discard() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        return count == 0 || count < 0 && !SocketSystem.isTransient(errno)
    }
}
