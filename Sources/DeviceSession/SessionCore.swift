// SPDX-License-Identifier: MIT

import BluetoothLE

/// A session's one writer: feeds the machines with what the radio, the app and the clock say, and does what they want.
///
/// What waits for the radio runs in tasks of its own, which come back with the number of the run they belong to; what
/// an earlier run still says is not heard.
actor SessionCore {
    enum Phase {
        case idle
        case scanning(ScanRun)
        /// The first attempt, or one after a loss.
        case connecting(Task<any PeripheralConnection, any Error>?)
        case connected(Link)
        /// Our own end: the link is being taken down.
        case disconnecting
        case failed
        case tornDown
    }

    let radio: any Central
    let profile: DeviceProfile
    let configuration: DeviceSession.Configuration
    let board: SessionBoard
    let hub: EventHub
    let resultStreams: Broadcast<[ScanResult]>
    let factStreams: Broadcast<DeviceFacts>

    var phase = Phase.idle
    /// Counts connections and scans.
    var run = 0
    var channel: CommandChannel
    var lines: LineAssembly?
    var frames: FrameAssembly?
    var codec: any PacketCodec
    /// What is in the way of the conversation while there is a link.
    var channelFailure: DeviceSessionError?
    /// Not on the radio's executor: what comes of it are events, and with them the app's code.
    private lazy var timer = DeadlineTimer(clock: radio.clock) { [weak self] in await self?.timerFired() }
    private var lastID: UInt64 = 0
    /// Calls whose task waits, and the results of those that have theirs: through the actor's own state, since a value
    /// that goes through a continuation looks like a race to ThreadSanitizer (Swift 6.3.1).
    private var calls: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var outcomes: [UInt64: CommandChannel.Outcome] = [:]
    var waiters: [UInt64: GateWaiter] = [:]
    var gateResults: [UInt64: Result<Void, DeviceSessionError>] = [:]
    /// Ends when the last connection of ours is down.
    var closing: Task<Void, Never>?

    init(
        radio: any Central,
        profile: DeviceProfile,
        configuration: DeviceSession.Configuration,
        board: SessionBoard,
        hub: EventHub,
        resultStreams: Broadcast<[ScanResult]>,
        factStreams: Broadcast<DeviceFacts>
    ) {
        self.radio = radio
        self.profile = profile
        self.configuration = configuration
        self.board = board
        self.hub = hub
        self.resultStreams = resultStreams
        self.factStreams = factStreams
        codec = configuration.codec
        board.codecName = configuration.codec.name
        var rules = ResponseRules()
        var hasPrompt = false
        switch profile.framing {
        case .lines(let format, let responses):
            lines = LineAssembly(format)
            rules = responses
            hasPrompt = format.prompt?.isEmpty == false
        case .frames(let format):
            frames = FrameAssembly(format)
        case .packets:
            break
        }
        channel = CommandChannel(
            rules,
            hasPrompt: hasPrompt,
            quietWindow: configuration.quietWindow,
            turnTimeout: configuration.turnTimeout
        )
    }

    var now: ContinuousClock.Instant { radio.clock.now }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: State

    func enter(_ phase: Phase, _ state: SessionState) {
        self.phase = phase
        if case .connecting = phase {} else { board.connectInterruption = nil }
        guard board.state != state else { return }
        board.state = state
        log(.info, "state: \(state)")
        hub.send(.connectionStateChanged(state))
        settleGates()
        rearm()
    }

    func log(_ level: SessionLogEntry.Level, _ message: @autoclosure () -> String) {
        guard let logger = configuration.logger else { return }
        logger.log(SessionLogEntry(level: level, message: LogText.line(message()), time: now))
    }

    /// One timer for everything that has a time: the nearest.
    func rearm() {
        var deadlines = [channel.deadline, lines?.deadline, waiters.values.map(\.deadline).min()]
        if case .scanning(let scan) = phase { deadlines.append(scan.table.deadline) }
        timer.set(deadlines.compactMap { $0 }.min())
    }

    private func timerFired() {
        timer.fired()
        let now = now
        if let tokens = lines?.timerFired(at: now) { for token in tokens { perform(channel.received(token, at: now)) } }
        perform(channel.timerFired(at: now))
        expireScan(at: now)
        expireGates(at: now)
        rearm()
    }

    // MARK: Calls

    /// Hands a piece of work to the channel and waits for its outcome. A cancelled task gets its answer at once.
    func call(_ work: CommandChannel.Work, _ bytes: [UInt8], owner: UInt64?, isLogged: Bool) async
        -> (id: UInt64, outcome: CommandChannel.Outcome)
    {
        let id = nextID()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                begin(
                    CommandChannel.Entry(id: id, work: work, bytes: bytes, owner: owner, isLogged: isLogged),
                    continuation
                )
            }
        } onCancel: {
            Task { await self.cancel(id) }
        }
        return (id, outcomes.removeValue(forKey: id) ?? .failed(.cancelled))
    }

    private func begin(_ entry: CommandChannel.Entry, _ continuation: CheckedContinuation<Void, Never>) {
        calls[entry.id] = continuation
        // A cancellation from now on finds the call; an earlier one is seen here.
        if Task.isCancelled { return finish(entry.id, .failed(.cancelled)) }
        do throws(DeviceSessionError) {
            perform(try channel.submit(entry, at: now))
        } catch {
            finish(entry.id, .failed(error))
        }
        rearm()
    }

    private func cancel(_ id: UInt64) {
        guard calls[id] != nil else { return }
        perform(channel.cancel(id, at: now))
        rearm()
    }

    func finish(_ id: UInt64, _ outcome: CommandChannel.Outcome) {
        guard let call = calls.removeValue(forKey: id) else { return }
        outcomes[id] = outcome
        call.resume()
    }

    func endExclusive(_ id: UInt64) {
        perform(channel.endExclusive(id, at: now))
        rearm()
    }

    func sendNoWait(_ bytes: [UInt8], owner: UInt64?, isLogged: Bool) throws(DeviceSessionError) -> SendID {
        let id = nextID()
        let entry = CommandChannel.Entry(
            id: id, work: .payload(timeout: .zero), bytes: bytes, owner: owner, isLogged: isLogged)
        perform(try channel.submitNoWait(entry, at: now))
        rearm()
        return SendID(rawValue: id)
    }

    func perform(_ actions: [CommandChannel.Action]) {
        for action in actions {
            switch action {
            case .write(let entry): write(entry)
            case .finish(let id, let outcome): finish(id, outcome)
            case .line(let line, let isLogged):
                if isLogged { log(.debug, "< \(line.text)") }
                hub.send(.line(line))
            }
        }
    }
}
