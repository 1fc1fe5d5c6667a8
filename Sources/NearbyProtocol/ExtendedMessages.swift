// SPDX-License-Identifier: MIT

/// Client message 0: `sid` (16), the largest notification that the client takes (u16 big-endian), `Ya` (32), and the
/// sealed request.
struct OpeningMessage: Equatable, Sendable {
    static let sidBytes = 16
    /// `sid` and size: what `ADa` covers.
    static let headBytes = 18
    static let shareEnd = 50
    /// With a sealed message of no bytes.
    static let leastBytes = 66

    let sid: [UInt8]
    /// Bytes; 0: not known.
    let largestNotification: Int
    let share: [UInt8]
    let sealed: [UInt8]

    init(sid: [UInt8], largestNotification: Int, share: [UInt8], sealed: [UInt8]) {
        self.sid = sid
        self.largestNotification = largestNotification
        self.share = share
        self.sealed = sealed
    }

    /// Nil where it is too short.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.leastBytes else { return nil }
        sid = Array(bytes[..<Self.sidBytes])
        largestNotification = Int(bytes[16]) << 8 | Int(bytes[17])
        share = Array(bytes[Self.headBytes..<Self.shareEnd])
        sealed = Array(bytes[Self.shareEnd...])
    }

    /// `ADa`: the message's bytes before the share.
    static func associatedData(sid: [UInt8], largestNotification: Int) -> [UInt8] {
        let size = UInt16(clamping: largestNotification)
        return sid + [UInt8(size >> 8), UInt8(size & 0xFF)]
    }

    var associatedData: [UInt8] { Self.associatedData(sid: sid, largestNotification: largestNotification) }

    var bytes: [UInt8] { associatedData + share + sealed }

    /// The largest frame towards this client.
    ///
    /// - Parameter budget: what the connection carries now.
    func frameBytes(_ budget: NotificationBudget) -> Int {
        let said = largestNotification == 0 ? ProtocolLimits.attributeBytes : largestNotification
        return max(min(budget.bytes, said), ProtocolLimits.frameToClientAtLeast)
    }
}

extension SealedChannel {
    /// What client and host share after hello and message 0; nil where a share is none, which counts as a wrong passcode.
    init?(
        _ role: Role, own: CPace.Share, hello: Hello, associatedData: [UInt8], clientShare: [UInt8], tag: FrameTag
    ) {
        let peer = role == .host ? clientShare : hello.share
        guard let element = CPace.sharedElement(own, with: peer) else { return nil }
        let transcript = CPace.Transcript(
            ya: clientShare, ada: associatedData, yb: hello.share, adb: hello.associatedData)
        self.init(
            role, intermediateKey: CPace.intermediateKey(sid: hello.sid, element: element, transcript), tag: tag)
    }
}
