// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A listening socket.
final class Listener: PolledSocket {
    private struct State {
        var isOpen = true
        var pausedUntil: ContinuousClock.Instant?
    }

    let endpoint: BridgeEndpoint
    private let descriptor: Int32
    private let loop: SocketLoop
    private let onAccept: @Sendable (Int32) -> Void
    private let state = Locked(State())

    /// Ends also where the task is cancelled.
    ///
    /// - Parameter mayBeRemote: Whether it may listen where other machines can reach it.
    static func open(
        _ endpoint: BridgeEndpoint,
        mayBeRemote: Bool,
        loop: SocketLoop = .shared,
        onAccept: @escaping @Sendable (Int32) -> Void
    ) async throws(BluetoothError) -> Listener {
        let outcome = await BlockingCall.run(within: BridgeLimits.reach) { late in
            if case .success(let socket) = late { SocketSystem.close(socket.descriptor) }
        } _: {
            openSocket(at: endpoint, mayBeRemote: mayBeRemote)
        }
        switch outcome {
        case .done(let result):
            let socket = try result.get()
            let actual = BridgeEndpoint(host: endpoint.host, port: socket.port)
            return try Listener(socket.descriptor, actual, loop, onAccept)
        case .late: throw refused(endpoint, "its name was not found in \(BridgeLimits.reach)")
        case .cancelled: throw .cancelled
        case .noThread: throw refused(endpoint, "no thread to be had")
        }
    }

    private static func refused(_ endpoint: BridgeEndpoint, _ reason: String) -> BluetoothError {
        BluetoothError(
            .serviceUnavailable, "cannot listen on \(endpoint): \(reason)",
            advice: "Does another bridge run there? Choose another port.")
    }

    /// Blocks while it looks the name up.
    private static func openSocket(
        at endpoint: BridgeEndpoint,
        mayBeRemote: Bool
    ) -> Result<(descriptor: Int32, port: Int), BluetoothError> {
        var reason = "no such address"
        var isRemote = false
        let opened = endpoint.firstAddress(toListen: true) {
            address, length, family -> (descriptor: Int32, port: Int)? in
            guard mayBeRemote || isLoopback(address) else {
                isRemote = true
                return nil
            }
            let descriptor = SocketSystem.open(family)
            guard descriptor >= 0 else {
                reason = SocketSystem.Failure.last.description
                return nil
            }
            var one: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
            SocketSystem.prepare(descriptor)
            guard bind(descriptor, address, length) == 0, listen(descriptor, Limits.backlog) == 0,
                let port = Self.port(of: descriptor)
            else {
                reason = SocketSystem.Failure.last.description
                SocketSystem.close(descriptor)
                return nil
            }
            return (descriptor, port)
        }
        if let opened { return .success(opened) }
        guard isRemote else { return .failure(refused(endpoint, reason)) }
        return .failure(
            BluetoothError(
                .unauthorized, "\(endpoint) can be reached from other machines, and there is no token",
                advice: "Give a token, or listen on \(BridgeEndpoint.loopback)."))
    }

    private init(
        _ descriptor: Int32,
        _ endpoint: BridgeEndpoint,
        _ loop: SocketLoop,
        _ onAccept: @escaping @Sendable (Int32) -> Void
    ) throws(BluetoothError) {
        self.descriptor = descriptor
        self.endpoint = endpoint
        self.onAccept = onAccept
        self.loop = loop
        do throws(BluetoothError) {
            try loop.add(self)
        } catch {
            SocketSystem.close(descriptor)
            throw error
        }
    }

    func close() {
        state.withLock { $0.isOpen = false }
        loop.ring()
    }

    private static func isLoopback(_ address: UnsafePointer<sockaddr>) -> Bool {
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            return UInt32(bigEndian: raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr) >> 24 == 127
        case AF_INET6:
            var ip = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            return withUnsafeBytes(of: &ip) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
        default:
            return false
        }
    }

    private static func port(of descriptor: Int32) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0 else { return nil }
        // The port stands at the same place in both families.
        return withUnsafeBytes(of: &storage) { Int($0[2]) << 8 | Int($0[3]) }
    }

    // MARK: - The loop's calls

    func interest() -> SocketInterest? {
        state.withLock { state in
            guard state.isOpen else { return nil }
            if let pause = state.pausedUntil, pause <= .now { state.pausedUntil = nil }
            return SocketInterest(
                descriptor: descriptor, reads: state.pausedUntil == nil, writes: false, deadline: state.pausedUntil)
        }
    }

    func proceed(reads: Bool, writes: Bool) {
        guard reads else { return }
        let connection = accept(descriptor, nil, nil)
        if connection >= 0 { return onAccept(connection) }
        // Without a pause the loop would spin until a descriptor is free.
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
            state.withLock { $0.pausedUntil = .now.advanced(by: Limits.acceptPause) }
        }
    }

    func retire() {
        SocketSystem.close(descriptor)
    }
}
