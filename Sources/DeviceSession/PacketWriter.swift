// SPDX-License-Identifier: MIT

import BluetoothLE

/// Sends a message in packets, one after another, each when the radio has taken the one before.
struct PacketWriter: Sendable {
    let connection: any PeripheralConnection
    let characteristic: RemoteCharacteristic
    let type: WriteType
    let longestPacket: Int
    let pause: Duration
    let clock: any MonotonicClock

    init(
        _ connection: any PeripheralConnection,
        _ characteristic: RemoteCharacteristic,
        _ profile: DeviceProfile,
        _ clock: any MonotonicClock
    ) {
        self.connection = connection
        self.characteristic = characteristic
        let hasCommands = characteristic.properties.contains(.writeWithoutResponse)
        let hasRequests = characteristic.properties.contains(.write)
        type =
            switch profile.writeMode {
            case .automatic, .withoutResponse: hasCommands ? .withoutResponse : .withResponse
            case .withResponse: hasRequests ? .withResponse : .withoutResponse
            }
        longestPacket = profile.longestPacket
        pause = profile.packetPause.bounded
        self.clock = clock
    }

    func send(_ message: [UInt8], _ codec: any PacketCodec) async -> DeviceSessionError? {
        let mtu = await connection.attMTU
        let size = min(longestPacket, mtu.map { $0 - 3 } ?? Limits.smallestPacket) - max(codec.overhead, 0)
        guard size > 0 else {
            return DeviceSessionError(.invalidArgument, "the codec leaves no room in a packet")
        }
        var rest = message[...]
        while !rest.isEmpty {
            let packet = codec.encode(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
            do throws(BluetoothError) {
                try await connection.write(packet, to: characteristic, type: type)
            } catch {
                return DeviceSessionError(radio: error, otherwise: .writeFailed)
            }
            if pause > .zero, !rest.isEmpty { try? await clock.sleep(for: pause) }
        }
        return nil
    }
}
