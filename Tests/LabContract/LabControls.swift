// SPDX-License-Identifier: MIT

import ContractSuite
import Dispatch
import Glibc

/// What a case does to the lab's radio and daemons, through the lab's control channel (docs/testing.md).
///
/// Both adapters belong to one bluetoothd: a restart for one role is one for both.
struct LabControls: ContractControls {
    private static let path = "/run/lab.sock"

    // No MTU: two adapters of one bluetoothd always agree on 517.
    var abilities: Set<ContractAbility> { [.power, .plug, .serviceRestart, .dropLink, .rssi, .range] }

    func perform(_ intervention: ContractIntervention) async throws {
        let command =
            switch intervention {
            case .setPower(let isOn, let role): #"{"do":"power","of":"\#(adapter(role))","on":\#(isOn)}"#
            case .restartService: #"{"do":"restart"}"#
            case .dropLink: #"{"do":"drop","of":"hci0"}"#
            case .setRSSI(let rssi): #"{"do":"rssi","of":"hci0","value":\#(rssi ?? 127)}"#
            case .setInRange(let inRange): #"{"do":"range","of":"hci0","on":\#(inRange)}"#
            case .setPlugged(let isIn, let role): #"{"do":"\#(isIn ? "plug" : "unplug")","of":"\#(adapter(role))"}"#
            case .setMTU: throw ContractViolation(description: "the lab sets no MTU between two adapters")
            }
        // A restart takes seconds, which the cases' own tasks need.
        let answer: Result<String, LabFailure> = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Self.ask(command)) }
        }
        let text = try answer.get()
        if text.contains(#""error""#) || text.contains(#""dropped": 0"#) { throw LabFailure(text) }
    }

    private func adapter(_ role: ContractRole) -> String {
        switch role {
        case .peripheral: "hci0"
        case .central: "hci1"
        }
    }

    /// Sends a line, and waits for one.
    private static func ask(_ command: String) -> Result<String, LabFailure> {
        let channel = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard channel >= 0 else { return .failure(LabFailure("no socket: \(errno)")) }
        defer { close(channel) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(channel, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { return .failure(LabFailure("no control channel: \(errno)")) }
        let line = Array((command + "\n").utf8)
        let sent = send(channel, line, line.count, 0)
        guard sent == line.count else { return .failure(LabFailure("not sent: \(errno)")) }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1024)
        while answer.last != UInt8(ascii: "\n"), answer.count < 65536 {
            let count = recv(channel, &buffer, buffer.count, 0)
            guard count > 0 else { return .failure(LabFailure("no answer: \(errno)")) }
            answer += buffer[..<count]
        }
        return .success(String(decoding: answer, as: UTF8.self))
    }
}

struct LabFailure: Error, CustomStringConvertible {
    let description: String

    init(_ text: String) { description = "the lab: " + text }
}
