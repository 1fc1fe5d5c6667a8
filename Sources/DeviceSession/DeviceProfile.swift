// SPDX-License-Identifier: MIT

public import BluetoothLE

/// Where a device's conversation takes place, and in which form.
public struct DeviceProfile: Sendable, Hashable {
    /// A characteristic, in a service where that matters.
    public struct Place: Sendable, Hashable {
        public var service: BluetoothUUID?
        public var characteristic: BluetoothUUID

        public init(_ characteristic: BluetoothUUID, in service: BluetoothUUID? = nil) {
            self.service = service
            self.characteristic = characteristic
        }
    }

    /// A pair of characteristics, or one that is both.
    public struct Channel: Sendable, Hashable {
        /// What we write to.
        public var outgoing: Place
        /// What notifies us.
        public var incoming: Place

        public init(outgoing: Place, incoming: Place) {
            self.outgoing = outgoing
            self.incoming = incoming
        }

        /// One characteristic for both directions.
        public init(_ place: Place) { self.init(outgoing: place, incoming: place) }
    }

    /// The form of what is said.
    public enum Framing: Sendable, Hashable {
        case lines(LineFormat, ResponseRules)
        case frames(FrameFormat)
        /// Each notification is a payload.
        case packets
    }

    public enum WriteMode: Sendable, Hashable {
        /// Without response where the characteristic allows it.
        case automatic
        case withResponse
        case withoutResponse
    }

    /// For messages and logs.
    public var name: String
    /// The first that a device has is used. Empty: no conversation, only facts and services.
    public var channels: [Channel]
    public var framing: Framing
    public var writeMode: WriteMode
    /// Bytes of a packet at most, 1 to 512, for devices that cannot keep up; the ATT MTU less 3 bounds it in any case.
    public var longestPacket: Int
    /// A pause between two packets of one message, for devices that lose them otherwise.
    public var packetPause: Duration

    public init(
        name: String,
        channels: [Channel],
        framing: Framing = .lines(LineFormat(), .untilSilence),
        writeMode: WriteMode = .automatic,
        longestPacket: Int = 512,
        packetPause: Duration = .zero
    ) {
        self.name = name
        self.channels = channels
        self.framing = framing
        self.writeMode = writeMode
        self.longestPacket = longestPacket
        self.packetPause = packetPause
    }

    /// The same channels in another form.
    public func speaking(_ framing: Framing) -> DeviceProfile {
        var profile = self
        profile.framing = framing
        return profile
    }

    /// The same channels, with lines that end as AT commands do.
    public func speakingAT() -> DeviceProfile { speaking(.lines(LineFormat(sentEnd: "\r\n"), .at)) }

    /// What is wrong with it; `nil`: nothing.
    var flaw: String? {
        if channels.count > Limits.patterns { return "a profile has at most \(Limits.patterns) channels" }
        if !(1...Limits.packetBytes).contains(longestPacket) {
            return "a packet has 1 to \(Limits.packetBytes) bytes, not \(longestPacket)"
        }
        return switch framing {
        case .lines(_, let rules): rules.flaw
        case .frames(let format): format.flaw
        case .packets: nil
        }
    }
}

extension DeviceProfile {
    /// Nordic's UART service (Nordic Semiconductor, nRF Connect SDK: "Nordic UART Service (NUS)").
    public static let nordicUART = DeviceProfile(name: "Nordic UART", channels: [.nordicUART])
    /// HM-10 and its like: service FFE0 with the characteristic FFE1 for both directions (Jinan Huamao, HM-10 datasheet).
    public static let ffe0 = DeviceProfile(name: "FFE0/FFE1", channels: [.ffe0])
    /// Modules that are written to at FFE9 in service FFE5, and notify from FFE4 in service FFE0 or from FFE5 itself.
    public static let ffe5 = DeviceProfile(name: "FFE5/FFE9", channels: .ffe5)
    /// The first of the three above that a device has.
    public static let anyUART = DeviceProfile(
        name: "UART", channels: [.nordicUART, .ffe0] + [Channel].ffe5)
    /// No conversation: for facts and services of any device.
    public static let none = DeviceProfile(name: "none", channels: [])

    /// Characteristics of your own.
    public static func custom(
        service: BluetoothUUID?,
        outgoing: BluetoothUUID,
        incoming: BluetoothUUID,
        framing: Framing = .lines(LineFormat(), .untilSilence)
    ) -> DeviceProfile {
        let channel = Channel(outgoing: Place(outgoing, in: service), incoming: Place(incoming, in: service))
        return DeviceProfile(name: "custom", channels: [channel], framing: framing)
    }
}

extension DeviceProfile.Channel {
    /// The last part of Nordic's UUIDs: 6E40000n-B5A3-F393-E0A9-E50E24DCCA9E.
    private static func nordic(_ number: UInt8) -> BluetoothUUID {
        let bytes: [UInt8] = [
            0x6E, 0x40, 0x00, number, 0xB5, 0xA3, 0xF3, 0x93, 0xE0, 0xA9, 0xE5, 0x0E, 0x24, 0xDC, 0xCA, 0x9E,
        ]
        return BluetoothUUID(bytes: bytes) ?? BluetoothUUID(UInt16(number))
    }

    static let nordicUART = Self(
        outgoing: .init(nordic(2), in: nordic(1)), incoming: .init(nordic(3), in: nordic(1)))
    static let ffe0 = Self(.init(0xFFE1, in: 0xFFE0))
}

extension [DeviceProfile.Channel] {
    static let ffe5: Self = [
        .init(outgoing: .init(0xFFE9, in: 0xFFE5), incoming: .init(0xFFE4, in: 0xFFE0)),
        .init(.init(0xFFE9, in: 0xFFE5)),
        .init(outgoing: .init(0xFFE9, in: 0xFFE5), incoming: .init(0xFFE4, in: 0xFFE5)),
    ]
}

extension DeviceProfile.Channel {
    /// The characteristics of this channel, if a device has them and they can do it.
    func find(in services: [RemoteService]) -> (outgoing: RemoteCharacteristic, incoming: RemoteCharacteristic)? {
        let isWritable: CharacteristicProperties = [.write, .writeWithoutResponse]
        let isTelling: CharacteristicProperties = [.notify, .indicate]
        guard let outgoing = outgoing.find(in: services, isWritable),
            let incoming = incoming.find(in: services, isTelling)
        else { return nil }
        return (outgoing, incoming)
    }
}

extension DeviceProfile.Place {
    /// - Parameter properties: One of them is needed.
    fileprivate func find(
        in services: [RemoteService],
        _ properties: CharacteristicProperties
    ) -> RemoteCharacteristic? {
        for service in services where self.service == nil || self.service == service.uuid {
            for found in service.characteristics where found.uuid == characteristic {
                if !found.properties.isDisjoint(with: properties) { return found }
            }
        }
        return nil
    }
}
