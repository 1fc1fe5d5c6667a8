// SPDX-License-Identifier: MIT

extension DeviceSession {
    /// How a session works, but for the device's own ways, which are the profile's.
    public struct Configuration: Sendable {
        /// The codec at the beginning; `use(_:)` changes it, for later links, too.
        public var codec: any PacketCodec
        public var reconnection: ReconnectionPolicy
        /// What one attempt to connect may take.
        public var connectTimeout: Duration
        /// What a command may take, from its first byte on, where its call names no time.
        public var commandTimeout: Duration
        /// How soon after a `…NoWait` another one is refused with `busy`.
        public var quietWindow: Duration
        /// How long a call waits for its turn at most.
        public var turnTimeout: Duration
        /// Whether battery level and device information are read as soon as there is a link.
        public var readsDeviceInfo: Bool
        public var logger: (any SessionLogger)?

        public init(
            codec: any PacketCodec = PlainCodec(),
            reconnection: ReconnectionPolicy = .off,
            connectTimeout: Duration = .seconds(15),
            commandTimeout: Duration = .seconds(5),
            quietWindow: Duration = .milliseconds(100),
            turnTimeout: Duration = .seconds(30),
            readsDeviceInfo: Bool = true,
            logger: (any SessionLogger)? = nil
        ) {
            self.codec = codec
            self.reconnection = reconnection
            self.connectTimeout = connectTimeout.bounded
            self.commandTimeout = commandTimeout.bounded
            self.quietWindow = quietWindow.bounded
            self.turnTimeout = turnTimeout.bounded
            self.readsDeviceInfo = readsDeviceInfo
            self.logger = logger
        }
    }
}
