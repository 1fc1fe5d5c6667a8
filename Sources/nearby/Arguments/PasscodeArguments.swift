// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit

/// Reads the passcode from wherever it was put: an option, a file, standard input or the environment.
///
/// Errors name the source and never the passcode. An option's value is taken out of the process listing as soon as the
/// process runs (`ProcessArguments`), but a shell's history keeps it; the other ways leave no trace.
enum PasscodeArguments {
    /// Read where neither option is given.
    static let variable = "NEARBY_PASSCODE"
    /// `host --passcode random`: make one up.
    static let random = "random"

    enum Source: Equatable {
        case none
        case random
        case given(Passcode)

        /// What it gives; each time another one where one is made up.
        func passcode() -> Passcode? {
            switch self {
            case .none: nil
            case .random: .random()
            case .given(let passcode): passcode
            }
        }
    }

    static func source(_ values: OptionValues, allowsRandom: Bool) throws(Failure) -> Source {
        try values.refuse("passcode", with: "passcode-file")
        if let text = values.texts("passcode").first {
            if allowsRandom, text == random { return .random }
            guard text == "-" else { return .given(try passcode(text, from: "--passcode")) }
            if values.texts("payload-file").first == "-" {
                throw .usage("--passcode and --payload-file cannot both be standard input")
            }
            return .given(try passcode(try firstLine("-", "--passcode"), from: "standard input"))
        }
        if let path = values.texts("passcode-file").first {
            return .given(try passcode(try firstLine(path, "--passcode-file"), from: "the file of --passcode-file"))
        }
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return .none }
        // Whatever this process starts has no use for it.
        unsetenv(variable)
        return .given(try passcode(text, from: variable))
    }

    static func passcode(_ text: String, from source: String) throws(Failure) -> Passcode {
        do throws(PasscodeError) {
            return try Passcode(text)
        } catch {
            throw .usage("the passcode from \(source) cannot be used: \(error.message)")
        }
    }

    private static func firstLine(_ path: String, _ option: String) throws(Failure) -> String {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path, option, errno) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        switch HiddenLine.read(descriptor) {
        case .success(let line): return line
        case .failure(let error): throw unreadable(path, option, error.number)
        }
    }

    private static func unreadable(_ path: String, _ option: String, _ error: Int32) -> Failure {
        let name = path == "-" ? "standard input" : PlainText.quoted(path)
        return Failure(
            .unreadableFile, code: "unreadableFile", "\(option): cannot read \(name): \(systemMessage(error))")
    }
}

/// One line, byte by byte, so that nothing behind it is taken.
enum HiddenLine {
    struct ReadError: Error {
        let number: Int32
    }

    /// Without its end; what is longer than any secret is cut off where that shows.
    static func read(
        _ descriptor: Int32,
        limit: Int = ProtocolLimits.passcodeBytes.upperBound
    ) -> Result<String, ReadError> {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while bytes.count <= limit {
            let count = Glibc.read(descriptor, &byte, 1)
            if count < 0, errno == EINTR { continue }
            if count < 0 { return .failure(ReadError(number: errno)) }
            if count == 0 || byte == UInt8(ascii: "\n") { break }
            bytes.append(byte)
        }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return .success(String(decoding: bytes, as: UTF8.self))
    }
}

extension OptionSpec {
    static let profile = value("profile", nil, "NAME", "auto, basic or extended (default: auto)")
    static let passcodeFile = value("passcode-file", nil, "FILE", "read the passcode from the first line of FILE")
}

extension ValueType<ProfileChoice> {
    static var profile: Self {
        Self(expected: "auto, basic or extended") { ProfileChoice(rawValue: $0) }
    }
}
