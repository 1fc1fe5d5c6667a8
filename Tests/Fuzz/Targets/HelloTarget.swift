// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// Hello: read by a client, given out by a host, and what a client does with a hostile one.
enum HelloTarget {
    private static let start = Instant.now

    static func test(_ bytes: [UInt8]) {
        read(bytes)
        give(bytes)
    }

    // MARK: The client's side

    private static func read(_ bytes: [UInt8]) {
        let limit = bytes.count >= 6 ? bytes[2..<6].reduce(0) { $0 * 256 + Int($1) } : 0
        do throws(HelloError) {
            let hello = try Hello(bytes)
            require(bytes[0] == 1 && bytes.count >= 54 && (512...65_536).contains(limit), "only right ones are read")
            require(hello.bytes == bytes, "all of it is kept")
            require(hello.associatedData == Array(bytes[..<6] + bytes[54...]), "all but sid and share is bound")
            for profiles in [try? ClientProfiles(.auto, passcode: Passcode("482913")), .automatic] {
                if let profiles { use(bytes, hello, profiles) }
            }
        } catch {
            switch error {
            case .tooShort(let count): require(count == bytes.count && count < 54, "told as it is: too short")
            case .unknownVersion(let version): require(version == bytes.first && version != 1, "told as it is: version")
            case .limitOutOfRange(let told):
                require(told == limit && !(512...65_536).contains(limit), "told as it is: limit")
            }
        }
    }

    private static func use(_ bytes: [UInt8], _ hello: Hello, _ profiles: ClientProfiles) {
        let configuration = ExtendedClientConfiguration(
            appId: EnvelopeTarget.appId, profiles: profiles, requestID: JoinRequestID(SealedTarget.entropy))
        guard var machine = try? ExtendedExchangeMachine(1, with: "h", configuration, at: start) else {
            return require(false, "the client starts")
        }
        _ = machine.handle(.connected, at: start)
        _ = machine.handle(
            .discovered([ServiceInstance(id: 1, hasMessage: true, hasHello: true)]), at: start)
        let judged = machine.handle(.helloRead(bytes), at: start)
        let isForUs = (profiles.passcode != nil) == hello.flags.contains(.passcodeNeeded)
        guard isForUs else {
            let reason: SecurityRequired = profiles.passcode == nil ? .passcodeNeeded : .hostAsksForNoPasscode
            return require(judged.outcome == .failed(.securityRequired(reason)), "stops before any write")
        }
        require(judged.actions == [.subscribe(1, instance: 1)], "goes on")
        var step = machine.handle(.subscribed(mtu: 185), at: start)
        guard case .write(_, _, let first)? = step.actions.first else {
            return require(step.outcome == .failed(.unusableShare), "a share that is none ends it")
        }
        var message: [UInt8] = []
        var frame = first
        while true {
            require(frame.count <= 182, "frames fit")
            message += frame.dropFirst(4)
            step = machine.handle(.written, at: start)
            guard case .write(_, _, let next)? = step.actions.first else { break }
            frame = next
        }
        let opening = OpeningMessage(message)
        require(opening?.sid == hello.sid && opening?.share != hello.share, "message 0 names the hello")
    }

    // MARK: The host's side

    /// Reads by devices at offsets and times, as the bytes say.
    private static func give(_ bytes: [UInt8]) {
        var input = FuzzInput(bytes)
        var book = HelloBook()
        var given: [PeerID: [[UInt8]]] = [:]
        var (now, count) = (start, 0)
        while !input.isEmpty {
            let peer = PeerID("\(input.byte() & 0x07)")
            let offset = Int(input.byte() & 0x3F)
            now += .milliseconds(20 * Int(input.byte()))
            let slice = book.read(peer, offset: offset, at: now) {
                count += 1
                let sid = (0..<16).map { UInt8(truncatingIfNeeded: count >> (8 * ($0 & 3))) }
                let hello = Hello(flags: [], maximumEnvelope: 512, sid: sid, share: [UInt8](repeating: 7, count: 32))
                return (hello, SecretBytes(count: 32) { _ in })
            }
            switch slice {
            case .bytes(let slice):
                if offset == 0 { given[peer, default: []].append(slice) }
                require(slice == given[peer]?.last.map { Array($0[offset...]) }, "a slice of the newest")
            case .invalidOffset: require(offset > 0, "offset 0 is always answered")
            case .failed: require(false, "there is a hello")
            }
            require(book.count <= 4 * given.count && book.count <= 256, "few are kept")
        }
        for (peer, hellos) in given {
            let kept = hellos.suffix(4).map { Array($0[6..<22]) }
            for sid in hellos.map({ Array($0[6..<22]) }) where book.take(sid, by: peer, at: now) != nil {
                require(kept.contains(sid), "only the newest serve")
                require(book.take(sid, by: peer, at: now) == nil, "and each of them once")
            }
        }
    }
}
