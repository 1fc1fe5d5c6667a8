// SPDX-License-Identifier: MIT

/// Finds frames in packets, which are cut anywhere and have noise between them.
struct FrameAssembly {
    enum Token: Equatable {
        /// Header and payload.
        case frame([UInt8])
        /// What looked like a frame and was none, from its start to its end.
        case broken([UInt8])
    }

    private let format: FrameFormat
    private var pending: [UInt8] = []
    /// The running sum before each byte of `pending`, and after the last. With it each start costs the same, however long
    /// the frame is that it claims to begin: a peer can put one into every few bytes.
    private var sums: [UInt8] = [0]
    /// Bytes at the beginning of `pending` that have been told as part of a broken frame: whatever looks like a broken
    /// one inside of it is not told again.
    private var told = 0
    private var lastByte: ContinuousClock.Instant?

    init(_ format: FrameFormat) { self.format = format }

    mutating func take(_ bytes: [UInt8], at now: ContinuousClock.Instant) -> [Token] {
        // Half a frame of long ago must not swallow the next one.
        if let lastByte, now - lastByte >= format.patience { reset() }
        append(bytes)
        var tokens: [Token] = []
        var position = 0
        scan: while let start = nextStart(from: position) {
            position = start
            switch judge(at: start) {
            case .incomplete:
                break scan
            case .noFrame:
                position = start + 1
            case .broken(let length):
                if start >= told {
                    tokens.append(.broken(Array(pending[start..<start + length])))
                    told = start + length
                }
                // A good frame may begin inside of what was taken for one.
                position = start + 1
            case .good(let length, let payload):
                tokens.append(.frame(payload))
                position = start + length
            }
        }
        let done = min(position, pending.count)
        pending.removeFirst(done)
        sums.removeFirst(done)
        told = pending.isEmpty ? 0 : max(0, told - done)
        lastByte = pending.isEmpty ? nil : now
        return tokens
    }

    mutating func reset() {
        pending = []
        sums = [0]
        told = 0
        lastByte = nil
    }

    private mutating func append(_ bytes: [UInt8]) {
        pending += bytes
        var sum = sums[sums.count - 1]
        for byte in bytes {
            sum = format.checksum.running(sum, byte)
            sums.append(sum)
        }
    }

    /// Where a start stands, or may begin to stand at the end; `nil` once there is none, and all is noise.
    private mutating func nextStart(from position: Int) -> Int? {
        for index in position..<max(position, pending.count) {
            let rest = pending[index...].prefix(format.start.count)
            if format.start.starts(with: rest) { return index }
        }
        pending = []
        sums = [0]
        return nil
    }

    private enum Verdict {
        case incomplete, noFrame
        case broken(length: Int)
        case good(length: Int, payload: [UInt8])
    }

    private func judge(at start: Int) -> Verdict {
        let content = start + format.start.count
        let payload = content + format.headerBytes + format.lengthBytes
        guard payload <= pending.count else { return .incomplete }
        let digits = pending[content + format.headerBytes..<payload]
        let ordered = format.byteOrder == .bigEndian ? Array(digits) : digits.reversed()
        let length = ordered.reduce(0) { $0 << 8 | Int($1) }
        guard length <= format.longestPayload else { return .noFrame }
        let total = payload - start + length + 1 + format.end.count
        guard start + total <= pending.count else { return .incomplete }
        let checkAt = payload + length
        let isGood =
            pending[checkAt] == format.checksum.value(from: sums[start + format.firstCovered], to: sums[checkAt])
            && pending[(checkAt + 1)...].starts(with: format.end)
        guard isGood else { return .broken(length: total) }
        let header = pending[content..<content + format.headerBytes]
        return .good(length: total, payload: Array(header) + pending[payload..<checkAt])
    }
}
