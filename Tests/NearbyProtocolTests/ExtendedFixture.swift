// SPDX-License-Identifier: MIT

import Synchronization

@testable import NearbyProtocol

/// Random bytes that a test chooses, or that repeat from run to run.
final class ScriptedBytes: Sendable {
    private let next = Atomic<Int>(0)
    private let script: [[UInt8]]

    /// - Parameter script: what the first calls get, cut or filled with zeros; after that a hash of the count.
    init(_ script: [[UInt8]] = []) {
        self.script = script
    }

    var entropy: Entropy {
        Entropy { [self] memory, count in
            let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
            var bytes = number < script.count ? script[number] : []
            while number >= script.count, bytes.count < count {
                bytes += Sodium.genericHash(Array("\(number) \(bytes.count)".utf8))
            }
            for position in 0..<min(count, bytes.count) { memory[position] = bytes[position] }
        }
    }
}

/// An extended host and a clock that moves only when told.
struct ExtendedHostFixture {
    static let appId = "app"
    static let payload: JSONObject = ["roomCode": "SWIFT42"]
    static let handoff = Envelope.handoff(appId: appId, sessionId: "s", payload: payload)

    var machine: ExtendedHostMachine
    var now = Instant.now
    private var lastRequest: UInt64 = 0

    init(
        passcode: String? = nil, maximumEnvelope: Int = ProtocolLimits.extendedEnvelopeBytes,
        payload: JSONObject = Self.payload, appId: String = Self.appId, sessionId: String = "s",
        basic: BasicProfile = .automatic, entropy: Entropy = ScriptedBytes().entropy
    ) throws {
        machine = try ExtendedHostMachine(
            ExtendedHostConfiguration(
                appId: appId, sessionId: sessionId, payload: payload,
                profiles: HostProfiles(passcode: passcode.map { try Passcode($0) }, basic: basic),
                maximumEnvelope: maximumEnvelope), entropy: entropy)
    }

    mutating func request() -> RequestID {
        lastRequest += 1
        return RequestID(lastRequest)
    }

    mutating func fire(after duration: Duration) -> [ExtendedHostAction] {
        now += duration
        return machine.timerFired(at: now)
    }

    mutating func connect(_ peers: PeerID..., subscribed: Bool = true) {
        for peer in peers {
            _ = machine.centralConnected(peer, at: now)
            if subscribed { _ = machine.subscribed(peer, at: now) }
        }
    }

    mutating func hello(_ peer: PeerID, offset: Int = 0) -> [UInt8]? {
        for case .answer(_, let bytes) in machine.readHello(request(), from: peer, offset: offset, mtu: 185, at: now) {
            return bytes
        }
        return nil
    }

    mutating func write(_ frame: [UInt8], from peer: PeerID, offset: Int = 0, mtu: Int? = 185) -> [ExtendedHostAction] {
        machine.write(request(), from: peer, frame, offset: offset, mtu: mtu, at: now)
    }

    /// Writes all frames of a client's message.
    mutating func write(message: [UInt8], tag: FrameTag, from peer: PeerID, mtu: Int = 185) -> [ExtendedHostAction] {
        var writer = FrameWriter(message, tag: tag, frameBytes: ProtocolLimits.frameToHost(mtu: mtu))
        var actions: [ExtendedHostAction] = []
        while let frame = writer.next() { actions += write(frame, from: peer, mtu: mtu) }
        return actions
    }

    mutating func open(_ client: RawExtendedClient, from peer: PeerID, mtu: Int = 185) -> [ExtendedHostAction] {
        write(message: client.opening, tag: client.tag, from: peer, mtu: mtu)
    }

    mutating func decide(_ join: JoinID, _ decision: AdmissionDecision = .handoff()) -> [ExtendedHostAction] {
        machine.admissionDecided(join, decision, at: now)
    }

    /// Takes every frame that is on its way, one after the other.
    mutating func pump(_ actions: [ExtendedHostAction]) -> (
        frames: [(peer: PeerID, bytes: [UInt8])], all: [ExtendedHostAction]
    ) {
        var (queue, all, frames) = (actions, [ExtendedHostAction](), [(PeerID, [UInt8])]())
        while !queue.isEmpty {
            let action = queue.removeFirst()
            all.append(action)
            guard case .notify(let id, let bytes, let peer) = action else { continue }
            frames.append((peer, bytes))
            queue += machine.frameSent(id, at: now)
        }
        return (frames, all)
    }

    /// The reason of the plaintext reject that some input led to.
    mutating func plaintextReason(_ actions: [ExtendedHostAction]) -> RejectReason? {
        plaintextReject(actions)?.rejection?.reason
    }

    mutating func plaintextReject(_ actions: [ExtendedHostAction]) -> Envelope? {
        var assembly = FrameAssembly(sealedLimit: 0, plaintextLimit: 512)
        for (_, bytes) in pump(actions).frames {
            guard let frame = try? Frame(bytes) else { continue }
            if case .complete(let message, isPlaintext: true) = assembly.take(frame, at: now) {
                return try? Envelope.decode(message, as: .client)
            }
        }
        return nil
    }
}

/// A client that does what a test wants, not what the machine would.
struct RawExtendedClient {
    let share: CPace.Share
    let tag: FrameTag
    var opening: [UInt8]
    var channel: SealedChannel

    struct Unusable: Error {}

    init(
        _ hello: [UInt8]?, passcode: String? = nil, request: [UInt8]? = nil, largestNotification: Int = 0,
        entropy: Entropy = .system
    ) throws {
        let hello = try Hello(hello ?? [])
        let secret = SecretBytes.sharedSecret(try passcode.map { try Passcode($0) })
        let head = OpeningMessage.associatedData(sid: hello.sid, largestNotification: largestNotification)
        let request =
            request ?? Envelope.joinRequest(appId: ExtendedHostFixture.appId).encoded()
        guard let generator = CPace.generator(passcode: secret, channel: CPace.channel, sid: hello.sid),
            let own = CPace.share(Sodium.scalar(entropy), generator: generator), let tag = FrameTag(share: own.point),
            let channel = SealedChannel(
                .client, own: own, hello: hello, associatedData: head, clientShare: own.point, tag: tag),
            let sealed = channel.sealer.seal(request)
        else { throw Unusable() }
        share = own
        self.tag = tag
        self.channel = channel
        opening =
            OpeningMessage(
                sid: hello.sid, largestNotification: largestNotification, share: own.point, sealed: sealed.bytes
            ).bytes
    }

    /// A request with an id, as the client machine writes it.
    static func request(_ id: JoinRequestID, _ payload: JSONObject = [:], appId: String = ExtendedHostFixture.appId)
        -> [UInt8]
    {
        var payload = payload
        payload[JoinRequestID.key] = .string(id.text)
        return Envelope.joinRequest(appId: appId, payload: payload).encoded()
    }

    /// The answer in frames that reach everybody, as this client reads it.
    ///
    /// - Parameter foreign: Another client's tag, whose frames it tries its key on in place of its own.
    mutating func read(
        _ frames: [(peer: PeerID, bytes: [UInt8])], at now: Instant, tag foreign: FrameTag? = nil
    ) -> Envelope? {
        var assembly = FrameAssembly(sealedLimit: 70_000, plaintextLimit: 512)
        for (_, bytes) in frames {
            guard let frame = try? Frame(bytes), frame.tag == foreign ?? tag,
                case .complete(let message, isPlaintext: false) = assembly.take(frame, at: now),
                let plaintext = channel.opener.open(message)
            else { continue }
            return try? Envelope.decode(plaintext, as: .client, limit: 65_536)
        }
        return nil
    }
}

extension [ExtendedHostAction] {
    var events: [ExtendedHostEvent] {
        compactMap { if case .report(let event) = $0 { event } else { nil } }
    }

    var joins: [JoinID] {
        compactMap { if case .decide(let request) = $0 { request.id } else { nil } }
    }

    var refusals: [ATTErrorCode] {
        compactMap { if case .refuse(_, let code) = $0 { code } else { nil } }
    }

    var faults: [FrameFault] {
        events.compactMap { if case .frameRefused(_, let fault) = $0 { fault } else { nil } }
    }
}
