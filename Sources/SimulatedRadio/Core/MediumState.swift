// SPDX-License-Identifier: MIT

import BluetoothLE

struct AdapterID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

struct ScanID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

struct SessionID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

struct LinkID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

struct OperationID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

struct SubscriptionID: Hashable, Comparable, Sendable {
    let rawValue: UInt64
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// An ordered pair of adapters.
struct Pair: Hashable {
    let from: AdapterID
    let to: AdapterID

    init(_ from: AdapterID, _ to: AdapterID) {
        self.from = from
        self.to = to
    }
}

struct PairRecord {
    /// `nil`: the medium's; `.some(nil)`: no reading.
    var rssi: Int??
    var mtu: Int?
    var inRange = true
}

/// Everything in the air and in the stacks. All of it is touched under the core's lock only.
///
/// The files named `MediumState+…` hold one subject each.
struct MediumState {
    typealias Effect = @Sendable () -> Void
    typealias Action = @Sendable (inout MediumState) -> Void
    typealias TimerID = Timeline<Action>.ID

    /// The one wake-up that the clock has been asked for.
    struct Alarm {
        let deadline: ContinuousClock.Instant
        let cancel: @Sendable () -> Void
    }

    var now: ContinuousClock.Instant
    var conditions: Conditions
    var random: SeededGenerator
    var timeline = Timeline<Action>()
    var armed: Alarm?
    var effects: [Effect] = []
    var isPerforming = false
    private var lastNumber: UInt64 = 0

    var adapters: [AdapterID: AdapterRecord] = [:]
    var addresses: [PeerIdentifier: AdapterID] = [:]
    var pairs: [Pair: PairRecord] = [:]
    var sessions: [SessionID: SessionRecord] = [:]
    var connects: [OperationID: ConnectRecord] = [:]
    var links: [LinkID: LinkRecord] = [:]
    /// Requests that wait for an app's answer.
    var requests: [RequestID: RequestRecord] = [:]

    init(now: ContinuousClock.Instant, seed: UInt64, conditions: Conditions) {
        self.now = now
        self.conditions = conditions
        random = SeededGenerator(seed: seed)
    }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Does it at once if the delay is zero, else when the time has come.
    mutating func after(_ delay: Duration, _ action: @escaping Action) {
        if delay <= .zero { action(&self) } else { schedule(after: delay, action) }
    }

    @discardableResult
    mutating func schedule(after delay: Duration, _ action: @escaping Action) -> TimerID {
        timeline.add(action, at: now.advanced(by: delay))
    }

    mutating func cancel(_ timer: inout TimerID?) {
        if let timer { timeline.remove(timer) }
        timer = nil
    }

    mutating func runDue() {
        while let due = timeline.popFirst(due: now) { due.entry(&self) }
    }

    mutating func complete<Value>(_ promise: Promise<Value>, _ result: Result<Value, BluetoothError>) {
        effects.append { promise.complete(result) }
    }

    mutating func post<Element>(_ element: Element, to mailbox: Mailbox<Element>) {
        if let wake = mailbox.post(element).wake { effects.append(wake) }
    }

    mutating func finish<Element>(_ mailbox: Mailbox<Element>) {
        if let wake = mailbox.finish() { effects.append(wake) }
    }
}
