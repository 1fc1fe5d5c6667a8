// SPDX-License-Identifier: MIT

/// Puts lines together from packets, which are cut anywhere.
struct LineAssembly {
    enum Token: Equatable {
        case line(String)
        case prompt
    }

    private let format: LineFormat
    private let ends: Set<UInt8>
    private let prompt: [UInt8]
    private var pending: [UInt8] = []
    private var lastByte: ContinuousClock.Instant?

    init(_ format: LineFormat) {
        self.format = format
        ends = Set(format.receivedEnds.flatMap { String($0).utf8 })
        prompt = Array((format.prompt ?? "").utf8)
    }

    mutating func take(_ bytes: [UInt8], at now: ContinuousClock.Instant) -> [Token] {
        var tokens: [Token] = []
        for byte in bytes {
            if ends.contains(byte) {
                if let line = flush() { tokens.append(.line(line)) }
                continue
            }
            pending.append(byte)
            if !prompt.isEmpty, pending == prompt {
                pending = []
                tokens.append(.prompt)
            } else if pending.count == Limits.lineBytes, let line = flush() {
                tokens.append(.line(line))
            }
        }
        lastByte = pending.isEmpty ? nil : now
        return tokens
    }

    /// When a line without an end is taken as it is.
    var deadline: ContinuousClock.Instant? {
        guard let timeout = format.partialLineTimeout, let lastByte else { return nil }
        return lastByte + timeout.bounded
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> [Token] {
        guard let deadline, deadline <= now else { return [] }
        lastByte = nil
        return flush().map { [.line($0)] } ?? []
    }

    mutating func reset() {
        pending = []
        lastByte = nil
    }

    private mutating func flush() -> String? {
        guard !pending.isEmpty else { return nil }
        defer { pending = [] }
        // Devices pad their lines: "OK " is an OK.
        var bytes = pending[...]
        while bytes.last == UInt8(ascii: " ") || bytes.last == 0 { bytes.removeLast() }
        while bytes.first == 0 { bytes.removeFirst() }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
