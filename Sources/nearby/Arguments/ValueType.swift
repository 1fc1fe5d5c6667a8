// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// How an option's text is read, and what its user is told when it cannot be.
struct ValueType<Value>: Sendable {
    /// Completes "expected …".
    let expected: String
    let read: @Sendable (String) -> Value?
}

extension ValueType<Duration> {
    static var time: Self {
        Self(expected: "a time such as 500ms, 30s or 2m, at most 24 hours") { TimeText.duration($0) }
    }
}

extension ValueType<Int> {
    static func count(_ range: ClosedRange<Int>) -> Self {
        Self(expected: "a whole number from \(range.lowerBound) to \(range.upperBound)") { text in
            // `Int` alone would read "+5", and strings of any length.
            guard text.utf8.count <= 12, !text.hasPrefix("+"), let number = Int(text) else { return nil }
            return range.contains(number) ? number : nil
        }
    }

    static var rssi: Self {
        let count = count(-127...0)
        return Self(expected: "a signal strength in dBm from -127 to 0, such as -60") { count.read($0) }
    }
}

extension ValueType<String> {
    static var appId: Self {
        Self(expected: "a name of 1 to \(Limits.appIdBytes) bytes, such as com.example.chat") { text in
            (1...Limits.appIdBytes).contains(text.utf8.count) && PlainText.isPlain(text) ? text : nil
        }
    }

    static var uuid: Self {
        Self(expected: "a UUID such as 550e8400-e29b-41d4-a716-446655440000") { text in
            text.utf8.count == 36 && BluetoothUUID(text) != nil ? text : nil
        }
    }

    /// What BlueZ puts into the scan response.
    static var advertisedName: Self {
        Self(expected: "a name of 1 to \(AdvertisementBudget.longestName) bytes in UTF-8") { text in
            (1...AdvertisementBudget.longestName).contains(text.utf8.count) && PlainText.isPlain(text) ? text : nil
        }
    }

    static var adapter: Self {
        Self(expected: "an adapter's name or address, such as hci0 or 00:1A:7D:DA:71:13") { text in
            if BluetoothAddress(text) != nil { return text }
            guard text.hasPrefix("hci"), (4...7).contains(text.utf8.count) else { return nil }
            return text.utf8.dropFirst(3).allSatisfy { (48...57).contains($0) } ? text : nil
        }
    }

    static var busAddress: Self {
        Self(expected: "system, session, or a D-Bus address such as unix:path=/run/dbus/system_bus_socket") { text in
            if text == "system" || text == "session" { return text }
            guard text.utf8.count <= Limits.busAddressBytes, PlainText.isPlain(text) else { return nil }
            // transport:key=value,… ; the bus library judges the rest.
            guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else { return nil }
            let transport = text[..<colon].utf8
            let isName = transport.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
            return isName && text[colon...].contains("=") ? text : nil
        }
    }
}

/// Which host `join` takes.
enum SelectionName: String, CaseIterable, Sendable {
    case first, strongest, manual
}

extension ValueType<SelectionName> {
    static var selection: Self {
        Self(expected: "first, strongest or manual") { SelectionName(rawValue: $0) }
    }
}

/// Times as people write them.
enum TimeText {
    /// `500ms`, `30s`, `1.5m`; more than nothing, at most `Limits.timeout`, no finer than a millisecond.
    static func duration(_ text: String) -> Duration? {
        let units: [(String, Int)] = [("ms", 1), ("s", 1_000), ("m", 60_000)]
        guard text.utf8.count <= 16, let unit = units.first(where: { text.hasSuffix($0.0) }) else { return nil }
        let digits = text.dropLast(unit.0.count)
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isDigit) }),
            let whole = Int(parts[0])
        else { return nil }
        var milliseconds = whole.multipliedReportingOverflow(by: unit.1).partialValue
        guard whole <= Int(Limits.timeout / .milliseconds(1)) else { return nil }
        if parts.count == 2 {
            guard parts[1].utf8.count <= 3, let fraction = Int(parts[1]) else { return nil }
            let scale = [10, 100, 1_000][parts[1].utf8.count - 1]
            let product = fraction * unit.1
            guard product.isMultiple(of: scale) else { return nil }
            milliseconds += product / scale
        }
        let duration = Duration.milliseconds(milliseconds)
        return duration > .zero && duration <= Limits.timeout ? duration : nil
    }

    /// `0.8 s`, `12 s`, `3 min`.
    static func print(_ duration: Duration) -> String {
        let milliseconds = duration / .milliseconds(1)
        if milliseconds < 9_950 {
            let tenths = Int((milliseconds / 100).rounded())
            return "\(tenths / 10).\(tenths % 10) s"
        }
        let seconds = Int((milliseconds / 1_000).rounded())
        return seconds < 120 ? "\(seconds) s" : "\(seconds / 60) min"
    }

    private static func isDigit(_ unit: UInt8) -> Bool { (48...57).contains(unit) }
}
