// SPDX-License-Identifier: MIT

import DeviceSession
import Glibc
import NearbyDiscoveryKit

/// `nearby device console`: type lines to a UART-like device, and read what it says.
struct DeviceConsoleCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "device console",
        summary: "talk to a device over its UART, line by line",
        synopsis: "--device ADDRESS|NAME [OPTIONS]",
        options: DeviceWay.options + [
            .value("profile", nil, "NAME", "auto, nordic, ffe0 or ffe5 (default: auto, what the device has)"),
            .value("write", nil, "UUID", "the characteristic to write to, for a UART of another kind"),
            .value("notify", nil, "UUID", "the characteristic that it notifies from"),
            .value("service", nil, "UUID", "the service that both are in"),
            .value("line-end", nil, "HOW", "what ends a line that is sent: crlf, cr, lf or none (default: crlf)"),
            .value("xor", nil, "HEX", "packets are XORed with this key, in both directions"),
            .value("reconnect", nil, "N", "try N times to connect again, 0 to \(Limits.reconnections) (default: 0)"),
            .value("linger", nil, "TIME", "end so long after the input has ended and the device fell silent (1s)"),
        ] + OptionSpec.radio + OptionSpec.output,
        notes: [
            "At a terminal the line is edited, the arrow keys bring back earlier ones, and Ctrl-D ends. Elsewhere lines "
                + "are read from standard input, and the device's are printed to standard output.",
            "What the device sends is shown with its control characters escaped.",
        ],
        examples: [
            "nearby device console --device Meter",
            "echo VERSION | nearby device console -d 00:1A:7D:DA:71:13 --line-end lf -q",
        ]
    )

    private enum Ending: Sendable {
        case inputOver
        case lost(DeviceSessionError)
    }

    let output: OutputOptions
    let profile: DeviceProfile
    let configuration: DeviceSession.Configuration
    let linger: Duration
    private let way: DeviceWay
    var radio: RadioOptions { way.radio }

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        way = try DeviceWay(values)
        profile = try DeviceProfiles.profile(values)
        configuration = DeviceSession.Configuration(
            codec: try DeviceProfiles.codec(values),
            reconnection: try DeviceProfiles.reconnection(values),
            readsDeviceInfo: false
        )
        linger = try values.value("linger", as: .time) ?? .seconds(1)
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        // Once a line is being edited, nothing else may write to the terminal.
        let editing = Guarded<EditingTerminal?>(nil)
        let visit = DeviceVisit(
            way: way, profile: profile, configuration: configuration, context: context,
            log: { text in
                guard let terminal = editing.withLock({ $0 }) else { return context.console.detail(text) }
                if context.console.options.verbose { terminal.print("[\(text)]") }
            }
        )
        try await visit.run(until: .commandReady) { session throws(Failure) in
            try await talk(session, context, editing)
        }
        return .done
    }

    private func talk(
        _ session: DeviceSession,
        _ context: CommandContext,
        _ editing: Guarded<EditingTerminal?>
    ) async throws(Failure) {
        let typed = LineQueue()
        let terminal =
            output.json
            ? nil : EditingTerminal.start(prompt: "> ", line: { typed.put($0) }, atEnd: { typed.end() })
        editing.withLock { $0 = terminal }
        if terminal == nil {
            LineReader.start(STDIN_FILENO, line: { typed.put($0) }, atEnd: { typed.end() })
        }
        let (endings, ended) = AsyncStream.makeStream(of: Ending.self, bufferingPolicy: .bufferingOldest(1))
        let heard = Guarded(Monitor.now)
        let screen = ConsoleScreen(console: context.console, terminal: terminal)
        session.onEvent = { event in
            switch event {
            case .line(let line):
                heard.withLock { $0 = Monitor.now }
                screen.show(line.text)
            case .connectionStateChanged(let state):
                screen.show(state)
                if case .failed(let error) = state { ended.yield(.lost(error)) }
            default:
                break
            }
        }
        let interruptions = session.connectInterruptionUpdates()
        let waiting = Task(executorPreference: context.loop) {
            for await interruption in interruptions { screen.show(interruption, of: session) }
        }
        screen.begin(session)
        let sending = Task(executorPreference: context.loop) {
            while let line = await typed.next() { await send(line, session, screen) }
            heard.withLock { $0 = Monitor.now }
            while !Task.isCancelled {
                let rest = heard.withLock { $0 } + linger - Monitor.now
                if terminal != nil || rest <= .zero { break }
                await context.loop.sleep(for: rest)
            }
            ended.yield(.inputOver)
        }
        var ending = Ending.inputOver
        // Ends when this task is cancelled, too.
        for await first in endings {
            ending = first
            break
        }
        sending.cancel()
        waiting.cancel()
        typed.end()
        session.onEvent = nil
        await terminal?.stop()
        editing.withLock { $0 = nil }
        if case .lost(let error) = ending { throw Failure(error) }
    }

    private func send(_ line: String, _ session: DeviceSession, _ screen: ConsoleScreen) async {
        guard case .lines(let format, _) = profile.framing else { return }
        let bytes = Array((line + format.sentEnd).utf8)
        guard !bytes.isEmpty else { return }
        do throws(DeviceSessionError) {
            // What is typed while a lost link comes back, and before its channel is found, is for the device, too.
            try await session.waitUntil(.commandReady, timeout: Limits.timeout)
            try await session.sendPayload(bytes)
        } catch {
            if error.code != .cancelled { screen.note("not sent: \(error.message)") }
        }
    }
}

/// Where a console's lines appear.
private struct ConsoleScreen: Sendable {
    let console: Console
    let terminal: EditingTerminal?

    func begin(_ session: DeviceSession) {
        let name = session.device?.displayName ?? "the device"
        if console.options.json {
            let device = session.device.map { JSONValue.string($0.id) }
            console.result(JSONLine.text(.compact(["event": "connected", "device": device])))
        } else {
            let end = terminal == nil ? "" : "; Ctrl-D ends"
            note("Connected to \(PlainText.printable(name))\(end).")
        }
    }

    func show(_ line: String) {
        if console.options.json {
            console.result(JSONLine.text(["event": "line", "text": .string(line)]))
        } else {
            print(PlainText.printable(line, limit: Limits.lineBytes))
        }
    }

    func show(_ state: SessionState) {
        let event: String
        switch state {
        case .connecting: event = "reconnecting"
        case .connected: event = "connected"
        case .failed: event = "disconnected"
        case .idle, .scanning: return
        }
        if console.options.json { return console.result(JSONLine.text(["event": .string(event)])) }
        switch state {
        case .connecting: note("The connection was lost; trying again…")
        case .connected: note("Connected again.")
        default: break
        }
    }

    /// What keeps a lost link from being tried again, or `nil`.
    func show(_ interruption: BluetoothError?, of session: DeviceSession) {
        guard let error = interruption else {
            // Over, too, where the session is: that is told elsewhere.
            guard session.state == .connecting else { return }
            if console.options.json { return console.result(JSONLine.text(["event": "resumed"])) }
            return note("No longer waiting for Bluetooth; trying again…")
        }
        guard console.options.json else { return note(Console.waiting(for: error)) }
        console.result(
            JSONLine.text([
                "event": "paused", "code": .string("\(error.code)"), "message": .string(error.description),
            ]))
    }

    /// Beside the conversation: on standard error, unless a line is being edited on the same terminal.
    func note(_ text: String) {
        if console.options.quiet { return }
        if terminal != nil { print("[\(text)]") } else { console.note(text) }
    }

    private func print(_ text: String) {
        if let terminal { terminal.print(text) } else { console.result(text) }
    }
}
