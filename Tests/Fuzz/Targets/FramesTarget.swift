// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// Frames of many devices in any order and at any time, held against a model of docs/protocol.md ("Frames").
enum FramesTarget {
    private static let limit = 700
    private static let start = Instant.now

    /// A half message as it should be.
    private struct Half {
        var bytes: [UInt8] = []
        var next: UInt8 = 0
        let began: Instant
        var latest: Instant

        func isOver(at now: Instant) -> Bool { now >= began + .seconds(60) || now >= latest + .seconds(5) }
    }

    static func test(_ bytes: [UInt8]) {
        var input = FuzzInput(bytes)
        let frameBytes = Int(input.byte())
        assemble(&input)
        cutAndPutTogether(bytes, frameBytes: frameBytes)
        if let frame = try? Frame(bytes) { require(frame.bytes == bytes, "a frame is written as it was read") }
    }

    private static func assemble(_ input: inout FuzzInput) {
        var assemblies = FrameAssemblies(limit: limit)
        var model: [FrameAssemblies.Key: Half] = [:]
        var now = start
        var latest: FrameAssemblies.Key?
        while !input.isEmpty {
            let kind = input.byte()
            let peer = PeerID("\(kind & 0x1F)")
            now += .milliseconds(50 * Int(input.byte()))
            switch kind >> 5 {
            case 6:
                assemblies.drop(peer)
                model = model.filter { $0.key.peer != peer }
            case 7:
                while let key = assemblies.expired(at: now) {
                    require(model[key]?.isOver(at: now) ?? false, "what is dropped is over")
                    model[key] = nil
                }
                require(!model.values.contains { $0.isOver(at: now) }, "what is over is dropped")
            case 5 where latest != nil:
                // The right next frame, with much in it, so that bounds are reached.
                guard let key = latest else { continue }
                let frame = Frame(
                    moreFollows: input.byte() & 7 > 0, isPlaintext: false, tag: key.tag,
                    sequence: model[key]?.next ?? 0, data: [UInt8](repeating: kind, count: 234)[...])
                take(frame.bytes, key.peer, at: now, &assemblies, &model)
            default:
                let bytes = input.bytes(4) + input.bytes(Int(input.byte() & 0x1F))
                take(bytes, peer, at: now, &assemblies, &model)
                latest = (try? Frame(bytes)).map { FrameAssemblies.Key(peer: peer, tag: $0.tag) }
            }
            require(assemblies.count == model.count, "as many half messages as there are")
            require(assemblies.byteCount == model.values.reduce(0) { $0 + $1.bytes.count }, "and as many bytes")
            require(assemblies.count <= 32 && assemblies.byteCount <= 32 * limit, "memory is bounded")
        }
    }

    private static func take(
        _ bytes: [UInt8], _ peer: PeerID, at now: Instant, _ assemblies: inout FrameAssemblies,
        _ model: inout [FrameAssemblies.Key: Half]
    ) {
        let frame: Frame
        do throws(FrameFault) {
            frame = try Frame(bytes)
        } catch {
            let isWrong = bytes.count < 4 || bytes[0] > 3 || (bytes[0] & 1 == 1 && bytes.count == 4)
            require(isWrong, "only what is wrong is refused: \(error)")
            return
        }
        let key = FrameAssemblies.Key(peer: peer, tag: frame.tag)
        let before = model[key].flatMap { $0.isOver(at: now) ? nil : $0 }
        let ofPeer = model.keys.count { $0.peer == peer }
        let isFull = model[key] == nil && (model.count >= 32 || ofPeer >= 2)
        var half = Half(began: now, latest: now)
        if let before, before.next == frame.sequence { half = before }
        let isNext = half.next == frame.sequence
        half.bytes += frame.data
        half.next = frame.sequence &+ 1
        half.latest = now
        model[key] = nil
        switch assemblies.take(frame, from: peer, at: now) {
        case .incomplete:
            require(isNext && frame.moreFollows && !frame.isPlaintext && !isFull, "what is kept belongs there")
            require(half.bytes.count <= limit, "no message grows past its bound")
            model[key] = half
        case .complete(let message, let isPlaintext):
            require(isNext && !frame.moreFollows && !isPlaintext, "what is complete belongs together")
            require(message == half.bytes && message.count <= limit, "a message is its frames' data")
        case .refused(let fault):
            let isWrong =
                !isNext || frame.isPlaintext || half.bytes.count > limit || (isFull && frame.moreFollows)
            require(isWrong, "only what is wrong is refused: \(fault)")
        }
    }

    private static func cutAndPutTogether(_ message: [UInt8], frameBytes: Int) {
        let tag = FrameTag(high: 0xC0, low: 0xDE)
        var writer = FrameWriter(message, tag: tag, isPlaintext: true, frameBytes: frameBytes)
        var assembly = FrameAssembly(sealedLimit: 0, plaintextLimit: message.count)
        while let bytes = writer.next() {
            require(bytes.count <= max(frameBytes, 5), "no frame is longer than asked for")
            guard let frame = try? Frame(bytes) else { return require(false, "each can be read") }
            switch assembly.take(frame, at: start) {
            case .incomplete: require(!writer.isDone, "not complete before the end")
            case .complete(let whole, isPlaintext: true): require(writer.isDone && whole == message, "all at the end")
            default: require(false, "each is taken")
            }
        }
    }
}
