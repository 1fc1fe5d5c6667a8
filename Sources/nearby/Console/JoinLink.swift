// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// What the QR code of `host --qr` says: `nearby:?app=APP-ID&passcode=CODE` (docs/cli.md, "QR codes").
enum JoinLink {
    static func text(appId: String, passcode: Passcode) -> String {
        "nearby:?app=\(encoded(appId))&passcode=\(encoded(passcode.reveal()))"
    }

    /// Everything but RFC 3986's unreserved characters as `%XX`, by the bytes of its UTF-8.
    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isUnreserved =
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: "~"):
                    true
                default: false
                }
            let digits = String(byte, radix: 16, uppercase: true)
            return isUnreserved ? String(Unicode.Scalar(byte)) : (byte < 16 ? "%0" : "%") + digits
        }.joined()
    }
}
