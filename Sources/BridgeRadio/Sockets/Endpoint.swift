// SPDX-License-Identifier: MIT

#if canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#elseif canImport(Darwin)
package import Darwin
#endif

/// A host and a port of TCP, as `127.0.0.1:7877`, `localhost:7877` or `[::1]:7877`.
public struct BridgeEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// A name or an address, without brackets.
    public let host: String
    /// 0 lets the system choose, for who listens.
    public let port: Int

    /// The port of the protocol's file. The first article about BLEForEmulator has 7788.
    public static let defaultPort = BridgeLimits.port
    public static let loopback = BridgeEndpoint(host: "127.0.0.1", port: defaultPort)

    public init(host: String, port: Int = defaultPort) {
        self.host = host
        self.port = port
    }

    /// Reads `HOST:PORT`, `HOST` (for the default port) and `[ADDRESS]:PORT`; `nil` for anything else.
    public init?(_ text: String) {
        guard (1...BridgeLimits.textBytes).contains(text.utf8.count) else { return nil }
        var rest = Substring(text)
        var port = Self.defaultPort
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            let behind = rest[rest.index(after: end)...]
            rest = rest[rest.index(after: rest.startIndex)..<end]
            guard rest.contains(":") else { return nil }
            if !behind.isEmpty {
                guard behind.hasPrefix(":"), let number = Self.port(behind.dropFirst()) else { return nil }
                port = number
            }
        } else if let colon = rest.firstIndex(of: ":") {
            guard let number = Self.port(rest[rest.index(after: colon)...]) else { return nil }
            port = number
            rest = rest[..<colon]
        }
        let isName = rest.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-.:%_".utf8.contains(byte)
        }
        guard !rest.isEmpty, isName else { return nil }
        self.init(host: String(rest), port: port)
    }

    private static func port(_ text: Substring) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }),
            let number = Int(text), number <= 65_535
        else { return nil }
        return number
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Calls the body with each address that the name stands for, until it returns something. Blocks meanwhile.
    package func firstAddress<Value>(
        toListen: Bool,
        where body: (UnsafePointer<sockaddr>, socklen_t, _ family: Int32) -> Value?
    ) -> Value? {
        var hints = addrinfo()
        hints.ai_socktype = SocketSystem.stream
        hints.ai_flags = toListen ? AI_PASSIVE : 0
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var next = list
        while let entry = next {
            let info = entry.pointee
            if let address = info.ai_addr, let value = body(address, info.ai_addrlen, info.ai_family) { return value }
            next = info.ai_next
        }
        return nil
    }
}
