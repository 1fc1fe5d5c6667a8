// SPDX-License-Identifier: MIT

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Opens TCP connections.
enum SocketConnector {
    /// Ends also where the task is cancelled.
    ///
    /// - Returns: a connected descriptor; the system's words where there is none.
    static func connect(to endpoint: BridgeEndpoint) async -> Result<Int32, ConnectFailure> {
        let outcome = await BlockingCall.run(within: BridgeLimits.reach) { late in
            if case .success(let descriptor) = late { SocketSystem.close(descriptor) }
        } _: {
            attempt(endpoint)
        }
        return switch outcome {
        case .done(let result): result
        case .late: .failure(ConnectFailure(words: "it took more than \(BridgeLimits.reach)"))
        case .cancelled: .failure(ConnectFailure(words: "called off"))
        case .noThread: .failure(ConnectFailure(words: "no thread to be had"))
        }
    }

    struct ConnectFailure: Error, Sendable {
        let words: String
    }

    private static func attempt(_ endpoint: BridgeEndpoint) -> Result<Int32, ConnectFailure> {
        var words = "no such host"
        let descriptor = endpoint.firstAddress(toListen: false) { address, length, family -> Int32? in
            let descriptor = SocketSystem.open(family)
            guard descriptor >= 0 else {
                words = SocketSystem.Failure.last.description
                return nil
            }
            SocketSystem.prepare(descriptor)
            if let error = open(descriptor, address, length) {
                words = error.description
                SocketSystem.close(descriptor)
                return nil
            }
            return descriptor
        }
        return descriptor.map { .success($0) } ?? .failure(ConnectFailure(words: words))
    }

    private static func open(
        _ descriptor: Int32,
        _ address: UnsafePointer<sockaddr>,
        _ length: socklen_t
    ) -> SocketSystem.Failure? {
        #if canImport(Darwin)
        let result = Darwin.connect(descriptor, address, length)
        #elseif canImport(Musl)
        let result = Musl.connect(descriptor, address, length)
        #else
        let result = Glibc.connect(descriptor, address, length)
        #endif
        if result == 0 { return nil }
        guard errno == EINPROGRESS else { return .last }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let milliseconds = Int32(BridgeLimits.tcpConnect / .milliseconds(1))
        guard poll(&entry, 1, milliseconds) > 0 else { return SocketSystem.Failure(ETIMEDOUT) }
        var error: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
        return error == 0 ? nil : SocketSystem.Failure(error)
    }
}
