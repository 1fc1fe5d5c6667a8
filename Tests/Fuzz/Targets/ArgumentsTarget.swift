// SPDX-License-Identifier: MIT

import BridgeRadio
import NearbyDiscoveryKit

@testable import nearby

/// Command lines, payload files, and what a host sends as an attachment.
enum ArgumentsTarget {
    static func test(_ bytes: [UInt8]) {
        var input = FuzzInput(bytes)
        let kind = input.byte()
        let rest = input.everything()
        switch kind % 4 {
        case 0: commandLine(rest)
        case 1: pairs(rest)
        case 2: file(rest)
        default: attachment(rest)
        }
    }

    /// The bytes at the NULs, as the system hands words over.
    private static func words(_ bytes: [UInt8]) -> [String] {
        bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Command lines

    private static func commandLine(_ bytes: [UInt8]) {
        let words = words(bytes)
        for command in Program.commands {
            do throws(Failure) {
                let parsed = try ArgumentParser(spec: command.spec).parse(words)
                for (name, values) in parsed.values {
                    let option = command.spec.allOptions.first { $0.name == name }
                    require(option != nil && !values.isEmpty, "only options that there are")
                    require(values.count == 1 || option?.isRepeatable == true, "once, unless it may be repeated")
                }
                read(OptionValues(spec: command.spec, parsed: parsed), command)
            } catch {
                check(error, words, [.usage])
            }
        }
    }

    /// As far as nothing outside is touched: no file is read, nor standard input.
    private static func read(_ values: OptionValues, _ command: any Command.Type) {
        let outside = ["payload-file", "passcode-file", "attach", "output"]
        guard !outside.contains(where: values.flag), !values.texts("passcode").contains("-") else { return }
        do throws(Failure) {
            let made = try command.init(values)
            require(made.output.json == values.flag("json"), "an option is what was given")
            guard let host = made as? HostCommand else { return }
            require((1...255).contains(host.configuration.appId.utf8.count), "an app's id has its bounds")
            require(host.configuration.maximumHandoffs.map { $0 > 0 } ?? true, "a count is one")
        } catch {
            check(error, [], [.usage, .unfitPayload])
        }
    }

    private static func check(_ failure: Failure, _ words: [String], _ codes: Set<ExitCode>) {
        require(codes.contains(failure.exitCode), "a documented code: \(failure)")
        for text in [failure.message, failure.advice ?? ""] {
            require(text.utf8.count < 4_096, "what is wrong is told in few words")
            require(PlainText.isPlain(text), "and without what a terminal would obey")
        }
    }

    // MARK: Payloads

    private static func pairs(_ bytes: [UInt8]) {
        let pairs = words(bytes)
        do throws(Failure) {
            let payload = try PayloadArguments.parse(pairs: pairs)
            require(payload.object.count == pairs.count, "each pair is a key")
            for (pair, element) in zip(pairs, payload.object) {
                let key = String(decoding: pair.utf8.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
                if Array(element.key.utf8) == Array(key.utf8) {
                    let value = pair.utf8.dropFirst(key.utf8.count + 1)
                    require(element.value.string.map { Array($0.utf8) } == Array(value), "a value is what was typed")
                } else {
                    require(Array((element.key + ":").utf8) == Array(key.utf8), "a key is what was typed")
                }
            }
            require((try? JSONObject(parsing: payload.object.encoded())) == payload.object, "it can be sent")
        } catch {
            check(error, pairs, [.usage])
        }
    }

    private static func file(_ bytes: [UInt8]) {
        do throws(Failure) {
            let payload = try PayloadArguments.parse(file: bytes, named: "payload.json")
            require((try? JSONObject(parsing: bytes)) == payload.object, "it is what the file has")
        } catch {
            check(error, [], [.unfitPayload])
            require((try? JSONObject(parsing: bytes)) == nil || bytes.count > 65_536, "only what is wrong is refused")
        }
    }

    // MARK: Attachments

    private static func attachment(_ bytes: [UInt8]) {
        let name = String(decoding: bytes, as: UTF8.self)
        if Attachment.isSafe(name) {
            let wrong: (UInt8) -> Bool = { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "/") }
            require(!name.utf8.isEmpty && name.utf8.count <= 255, "a name has its bounds")
            require(
                !name.utf8.contains(where: wrong) && name.utf8.first != UInt8(ascii: "."), "and stays in its folder")
        }
        require(!PlainText.printable(name).utf8.contains { $0 < 0x20 || $0 == 0x7F }, "what is shown is harmless")
        if let decoded = Base64.decode(name) { require(Base64.encode(decoded) == name, "base64 has one form") }
        require(Base64.decode(Base64.encode(bytes)) == bytes, "and loses nothing")
        fromHost(bytes)
        toHost(bytes)
    }

    /// A payload that a host made up.
    private static func fromHost(_ bytes: [UInt8]) {
        guard let object = try? JSONObject(parsing: bytes) else { return }
        do throws(Failure) {
            guard let attachment = try Attachment(NearbyPayload(object)) else {
                return require(object[Attachment.nameKey] == nil, "none where there is none")
            }
            require(Attachment.isSafe(attachment.name), "only a safe name is taken")
            require(object.int(Attachment.sizeKey) == attachment.bytes.count, "and only all of it")
            require(object.string(Attachment.dataKey) == Base64.encode(attachment.bytes), "as it was sent")
        } catch {
            check(error, [], [.unfitPayload])
        }
    }

    private static func toHost(_ bytes: [UInt8]) {
        let attachment = Attachment(name: "plan.pdf", bytes: bytes)
        var payload = NearbyPayload(["roomCode": "SWIFT42"])
        require((try? attachment.add(to: &payload)) != nil, "it can be added")
        require((try? Attachment(payload)) == attachment, "and is found again")
    }
}
