// SPDX-License-Identifier: MIT

import BridgeRadio
import Glibc
import NearbyDiscoveryKit

/// A file in a payload: `attachmentName`, `attachmentSize` (bytes) and `attachmentData` (base64 with padding).
struct Attachment: Equatable {
    static let nameKey = "attachmentName"
    static let sizeKey = "attachmentSize"
    static let dataKey = "attachmentData"

    let name: String
    let bytes: [UInt8]

    init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    /// The file of `--attach`.
    init(reading path: String) throws(Failure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unreadable(path, errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw Self.unreadable(path, errno) }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= Limits.attachmentBytes else {
                throw Failure(
                    .unfitPayload,
                    code: "unfitPayload",
                    "--attach: \(PlainText.quoted(path)) is larger than the \(Limits.attachmentBytes) bytes that fit"
                )
            }
        }
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        guard Self.isSafe(name) else {
            throw .usage(option: "attach", "\(PlainText.quoted(name)) is no name that the other side would take")
        }
        self.init(name: name, bytes: bytes)
    }

    /// What a host has sent; nil where it sent no attachment.
    ///
    /// - Throws: where it sent something that is none.
    init?(_ payload: NearbyPayload) throws(Failure) {
        guard payload.object[Self.dataKey] != nil || payload.object[Self.nameKey] != nil else { return nil }
        guard let name = payload[Self.nameKey], Self.isSafe(name) else {
            throw Self.unfit("its name is missing, or could lead out of the folder")
        }
        guard let bytes = payload[Self.dataKey].flatMap({ Base64.decode($0) }) else {
            throw Self.unfit("its bytes are not base64")
        }
        guard payload.object[Self.sizeKey]?.int == bytes.count else {
            throw Self.unfit("it is not as long as it says")
        }
        self.init(name: name, bytes: bytes)
    }

    /// Puts it into a payload.
    func add(to payload: inout NearbyPayload) throws(Failure) {
        let pairs: [(String, JSONValue)] = [
            (Self.nameKey, .string(name)), (Self.sizeKey, .int(bytes.count)),
            (Self.dataKey, .string(Base64.encode(bytes))),
        ]
        for (key, value) in pairs {
            guard payload.object.insertIfAbsent(key, value) else {
                throw .usage(option: "attach", "the payload has the key \(PlainText.quoted(key)) already")
            }
        }
    }

    /// One component of a path, plain and visible in all its characters: it cannot lead out of a folder, hide in it, or
    /// be taken for another.
    static func isSafe(_ name: String) -> Bool {
        (1...Limits.attachmentNameBytes).contains(name.utf8.count) && !name.hasPrefix(".") && !name.contains("/")
            && PlainText.isVisible(name)
    }

    private static func unfit(_ why: String) -> Failure {
        Failure(.unfitPayload, code: "unfitAttachment", "the host's attachment cannot be taken: \(why)")
    }

    private static func unreadable(_ path: String, _ error: Int32) -> Failure {
        Failure(
            .unreadableFile,
            code: "unreadableFile",
            "--attach: cannot read \(PlainText.quoted(path)): \(systemMessage(error))"
        )
    }
}
