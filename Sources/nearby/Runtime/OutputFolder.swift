// SPDX-License-Identifier: MIT

import Glibc

/// The folder of `join --output`: takes whole files, and nothing outside it.
///
/// The folder is opened once, and everything after that happens relative to it: a name that was checked cannot come to
/// mean another place. A file gets its name when all of it is on the disk; one that is there already stays as it is.
final class OutputFolder: Sendable {
    let path: String
    private let descriptor: Int32

    init(_ path: String) throws(Failure) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let why = systemMessage(errno)
            throw .usage(option: "output", "\(PlainText.quoted(path)) is no folder to write to: \(why)")
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// - Returns: the file's path.
    func save(_ attachment: Attachment) throws(Failure) -> String {
        guard Attachment.isSafe(attachment.name) else { throw failed(attachment.name, EINVAL) }
        let part = ".nearby-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).part"
        let file = openat(descriptor, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failed(attachment.name, errno) }
        defer { unlinkat(descriptor, part, 0) }
        var error = Self.write(attachment.bytes, to: file)
        if error == 0, fchmod(file, 0o644 & ~Self.mask) != 0 || fsync(file) != 0 { error = errno }
        close(file)
        guard error == 0 else { throw failed(attachment.name, error) }
        // A link, not a rename: it never takes the place of what is there.
        guard linkat(descriptor, part, descriptor, attachment.name, 0) == 0 else {
            throw failed(attachment.name, errno)
        }
        _ = fsync(descriptor)
        return path.hasSuffix("/") ? path + attachment.name : "\(path)/\(attachment.name)"
    }

    private static var mask: mode_t {
        let mask = umask(0o077)
        umask(mask)
        return mask
    }

    /// - Returns: 0, or the error's number.
    private static func write(_ bytes: [UInt8], to file: Int32) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let count = Glibc.write(file, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : EIO }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return 0
        }
    }

    private func failed(_ name: String, _ error: Int32) -> Failure {
        Failure(
            .outputFailed,
            code: "outputFailed",
            "cannot save \(PlainText.quoted(name)) in \(PlainText.quoted(path)): \(systemMessage(error))",
            advice: error == EEXIST ? "A file that is there is never replaced; move it away." : nil
        )
    }
}
