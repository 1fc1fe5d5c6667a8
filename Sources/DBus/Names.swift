// SPDX-License-Identifier: MIT

/// The specification's rules for names, checked before libdbus sees them: it ends the process on a wrong one.
///
/// Source: D-Bus specification, "Valid Names".
package enum Names {
    /// An interface or error name: two or more elements of letters, digits and `_`, none starting with a digit.
    package static func isInterface(_ name: String) -> Bool {
        elements(name.utf8, hyphens: false, digitsFirst: false, atLeast: 2)
    }

    /// A method, signal or property name: one element.
    package static func isMember(_ name: String) -> Bool {
        elements(name.utf8, hyphens: false, digitsFirst: false, atLeast: 1) && !name.utf8.contains(UInt8(ascii: "."))
    }

    /// A name of a connection: well-known (`org.bluez`) or unique (`:1.42`).
    package static func isBusName(_ name: String) -> Bool {
        isUnique(name) || isWellKnown(name)
    }

    package static func isUnique(_ name: String) -> Bool {
        guard name.utf8.first == UInt8(ascii: ":"), name.utf8.count <= Limits.nameBytes else { return false }
        // A byte: the first character may be more than its colon.
        return elements(name.utf8.dropFirst(), hyphens: true, digitsFirst: true, atLeast: 2)
    }

    package static func isWellKnown(_ name: String) -> Bool {
        elements(name.utf8, hyphens: true, digitsFirst: false, atLeast: 2)
    }

    /// Refuses what begins like the interface or path that the specification reserves for what a library tells its own
    /// program: a bus ends the connection that sends it. The specification names just these two, but dbus-daemon compares
    /// no more than their length (load_and_validate_field in dbus/dbus-marshal-header.c).
    ///
    /// - Throws: ``DBusError/Code/invalidArgument``.
    static func checkNotReserved(interface: String) throws(DBusError) {
        try check("interface", interface, StandardInterface.local)
    }

    /// - Throws: As ``checkNotReserved(interface:)``.
    static func checkNotReserved(path: ObjectPath) throws(DBusError) {
        try check("path", path.string, StandardInterface.localPath.string)
    }

    private static func check(_ what: String, _ name: String, _ reserved: String) throws(DBusError) {
        guard !name.utf8.starts(with: reserved.utf8) else {
            throw DBusError(
                .invalidArgument,
                "D-Bus reserves the \(what) \(reserved), and a bus takes no message with "
                    + name.clipped(toBytes: Limits.quotedBytes),
                advice: "use another \(what)")
        }
    }

    private static func elements(
        _ name: some Collection<UInt8>, hyphens: Bool, digitsFirst: Bool, atLeast minimum: Int
    ) -> Bool {
        guard name.count <= Limits.nameBytes else { return false }
        var count = 1
        var length = 0
        for byte in name {
            switch byte {
            case UInt8(ascii: "."):
                guard length > 0 else { return false }
                count += 1
                length = 0
                continue
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                guard length > 0 || digitsFirst else { return false }
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"):
                break
            case UInt8(ascii: "-"):
                guard hyphens else { return false }
            default:
                return false
            }
            length += 1
        }
        return length > 0 && count >= minimum
    }
}
