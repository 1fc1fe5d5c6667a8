// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// The device that a command is for.
struct DeviceTarget: Sendable, Equatable {
    /// An address, or a name as it is advertised.
    let text: String
    let address: BluetoothAddress?

    init(_ text: String) {
        self.text = text
        address = BluetoothAddress(text)
    }

    func matches(_ result: ScanResult) -> Bool {
        if let address { return result.address?.rawValue == address.rawValue }
        return result.name == text
    }
}

/// The device that a command is for, and how to get there.
struct DeviceWay: Sendable, Equatable {
    static let options: [OptionSpec] = [.device, .deviceTimeout]

    let target: DeviceTarget
    let radio: RadioOptions
    /// Of the search.
    let timeout: Duration

    init(_ values: OptionValues) throws(Failure) {
        radio = try RadioOptions(values)
        target = try values.required("device", as: .device)
        timeout = try values.value("timeout", as: .time) ?? .seconds(15)
    }
}

/// How a device is talked to.
enum DeviceProfiles {
    /// With `--profile`, or with characteristics of the user's own.
    static func profile(_ values: OptionValues) throws(Failure) -> DeviceProfile {
        let outgoing = try values.value("write", as: .bluetoothUUID)
        let incoming = try values.value("notify", as: .bluetoothUUID)
        let service = try values.value("service", as: .bluetoothUUID)
        var profile = try values.value("profile", as: .deviceProfile) ?? .anyUART
        if outgoing != nil || incoming != nil || service != nil {
            try values.refuse("profile", with: "write")
            guard let outgoing, let incoming else {
                throw .usage("--write and --notify belong together", advice: "--service may narrow them down.")
            }
            profile = .custom(service: service, outgoing: outgoing, incoming: incoming)
        }
        let end = try values.value("line-end", as: .lineEnd) ?? "\r\n"
        // Devices print prompts and the like without an end: they are shown all the same.
        let format = LineFormat(sentEnd: end, partialLineTimeout: .milliseconds(300))
        return profile.speaking(.lines(format, .untilSilence))
    }

    static func codec(_ values: OptionValues) throws(Failure) -> any PacketCodec {
        guard let key = try values.value("xor", as: .hex) else { return PlainCodec() }
        return XORCodec(key: key)
    }

    static func reconnection(_ values: OptionValues) throws(Failure) -> ReconnectionPolicy {
        guard let attempts = try values.value("reconnect", as: .count(0...Limits.reconnections)), attempts > 0 else {
            return .off
        }
        return .attempts(attempts)
    }
}

extension OptionSpec {
    static let device = value("device", "d", "ADDRESS|NAME", "the device, by its address or its whole advertised name")
    static let deviceTimeout = value("timeout", "t", "TIME", "stop looking for the device after TIME (default: 15s)")
}

extension ValueType<DeviceTarget> {
    static var device: Self {
        Self(expected: "an address such as 00:1A:7D:DA:71:13, or a name of 1 to \(Limits.deviceNameBytes) bytes") {
            text in
            (1...Limits.deviceNameBytes).contains(text.utf8.count) ? DeviceTarget(text) : nil
        }
    }
}

extension ValueType<BluetoothUUID> {
    static var bluetoothUUID: Self {
        Self(expected: "a UUID such as FFE1 or 6e400002-b5a3-f393-e0a9-e50e24dcca9e") { BluetoothUUID($0) }
    }
}

extension ValueType<BluetoothAddress> {
    static var address: Self {
        Self(expected: "an address such as 00:1A:7D:DA:71:13") { BluetoothAddress($0) }
    }
}

extension ValueType<DeviceProfile> {
    static var deviceProfile: Self {
        Self(expected: "auto, nordic, ffe0 or ffe5") { text in
            switch text {
            case "auto": .anyUART
            case "nordic": .nordicUART
            case "ffe0": .ffe0
            case "ffe5": .ffe5
            default: nil
            }
        }
    }
}

extension ValueType<String> {
    static var lineEnd: Self {
        Self(expected: "crlf, cr, lf or none") { text in
            ["crlf": "\r\n", "cr": "\r", "lf": "\n", "none": ""][text]
        }
    }
}

extension ValueType<[UInt8]> {
    static var hex: Self {
        Self(expected: "1 to \(Limits.keyBytes) bytes in hexadecimal, such as 5a or 0badcafe") { text in
            let digits = Array(text)
            guard digits.count.isMultiple(of: 2), (1...Limits.keyBytes).contains(digits.count / 2),
                text.allSatisfy({ $0.isASCII && $0.isHexDigit })
            else { return nil }
            return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
        }
    }
}
