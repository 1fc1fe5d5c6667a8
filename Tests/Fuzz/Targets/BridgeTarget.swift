// SPDX-License-Identifier: MIT

import BluetoothLE

@testable import BridgeRadio

/// Lines of the emulator bridge, in any pieces: what a client sends to a bridge, and what a bridge sends to its client.
enum BridgeTarget {
    private static let limit = 512

    static func test(_ bytes: [UInt8]) {
        var input = FuzzInput(bytes)
        let sizes = input.bytes(4)
        let text = input.everything()
        var whole = LineBuffer(limit: limit)
        let lines = whole.take(text)
        require(pieces(text, sizes) == (whole.isBroken ? nil : lines), "lines do not depend on the pieces they come in")
        for line in lines {
            require(!line.isEmpty && line.count <= limit && !line.contains(10), "a line is one, and has its bound")
            request(line)
            event(line)
        }
    }

    /// - Returns: `nil` where a line was too long.
    private static func pieces(_ text: [UInt8], _ sizes: [UInt8]) -> [[UInt8]]? {
        var buffer = LineBuffer(limit: limit)
        var lines: [[UInt8]] = []
        var rest = text[...]
        var turn = 0
        while !rest.isEmpty {
            let size = sizes.isEmpty ? 1 : max(1, Int(sizes[turn % sizes.count]))
            lines += buffer.take(rest.prefix(size))
            rest = rest.dropFirst(size)
            turn += 1
        }
        return buffer.isBroken ? nil : lines
    }

    private static func request(_ line: [UInt8]) {
        do throws(BridgeMessageError) {
            let request = try BridgeRequest(line: line)
            let written = request.line()
            require(written.last == 10 && !written.dropLast().contains(10), "a message is one line")
            let again = try? BridgeRequest(line: Array(written.dropLast()))
            require(again == request, "a command is read again from what is written")
            if case .writeCharacteristic(_, let value, _) = request.command {
                require(value.count <= BridgeLimits.valueBytes, "a value has its bound")
            }
        } catch {
            require(error.id.map { $0.utf8.count <= BridgeLimits.textBytes } ?? true, "an echoed id has its bound")
        }
    }

    private static func event(_ line: [UInt8]) {
        guard let message = try? BridgeMessage(line: line) else { return }
        let written = message.line()
        require(written.last == 10 && !written.dropLast().contains(10), "a message is one line")
        let again = try? BridgeMessage(line: Array(written.dropLast()))
        if case .servicesDiscovered(_, let services, _) = message.event {
            // Its reader marks whose ids they are.
            guard case .servicesDiscovered(_, let read, _)? = again?.event else {
                return require(false, "a discovery is read again")
            }
            require(read.map(\.uuid) == services.map(\.uuid), "with its services")
        } else {
            require(again == message, "an event is read again from what is written")
        }
        let plain = message.line(isExtended: false)
        require(plain.count <= written.count, "the plain form says no more")
    }
}
