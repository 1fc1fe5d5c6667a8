// SPDX-License-Identifier: MIT

import CDBus
import Glibc

/// A file descriptor that travels in a message. This object owns it and closes it when it goes away.
public final class UnixFD: Sendable, Hashable {
    /// The descriptor's number, valid while this object lives.
    public let number: Int32

    /// Takes over an open descriptor. -1 is kept as "none" and refused when it is sent.
    public init(owning number: Int32) {
        self.number = number
    }

    /// Keeps a copy of a descriptor that somebody else owns.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for a descriptor that is not open,
    ///   ``DBusError/Code/limitExceeded`` if the process has too many.
    public convenience init(duplicating number: Int32) throws(DBusError) {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else {
            let code: DBusError.Code = errno == EMFILE ? .limitExceeded : .invalidArgument
            throw DBusError(code, "cannot duplicate file descriptor \(number): \(String(cString: strerror(errno)))")
        }
        self.init(owning: copy)
    }

    deinit {
        if number >= 0 { close(number) }
    }

    public static func == (left: UnixFD, right: UnixFD) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
