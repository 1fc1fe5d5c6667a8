// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// A phone, a device, and a clock that the test turns.
struct Bench: Sendable {
    let clock = ManualClock()
    let medium: SimulatedMedium
    let phone: SimulatedRadio
    let gadget: SimulatedRadio

    init(conditions: Conditions = Conditions()) {
        medium = SimulatedMedium(clock: clock, conditions: conditions)
        phone = medium.addAdapter(name: "phone")
        gadget = medium.addAdapter(name: "gadget")
    }

    static let at = DeviceProfile.nordicUART.speakingAT()

    func session(
        _ profile: DeviceProfile = at,
        _ configuration: DeviceSession.Configuration = .init()
    ) throws -> DeviceSession {
        try DeviceSession(profile: profile, radio: phone, configuration: configuration)
    }

    /// Serves a device, runs the body with a session that is ready, and ends both.
    func withSession<Value: Sendable>(
        _ profile: DeviceProfile = at,
        _ configuration: DeviceSession.Configuration = .init(),
        services: [LocalService]? = nil,
        script: @escaping ScriptedDevice.Script = modem,
        _ body: @escaping @Sendable (DeviceSession, ScriptedDevice) async throws -> Value
    ) async throws -> Value {
        try await clock.run { () async throws in
            let device =
                if let services {
                    try await ScriptedDevice(on: gadget, services: services, script: script)
                } else {
                    try await ScriptedDevice(on: gadget, script: script)
                }
            let session = try self.session(profile, configuration)
            do {
                try await connect(session)
                let value = try await body(session, device)
                await session.teardown()
                await device.stop()
                return value
            } catch {
                await session.teardown()
                await device.stop()
                throw error
            }
        }
    }

    /// From nothing to a session that takes commands.
    func connect(_ session: DeviceSession) async throws {
        try await find(session)
        try await session.connect(id: gadget.peerIdentifier)
        try await session.waitUntil(.commandReady, timeout: .seconds(10))
    }

    func find(_ session: DeviceSession) async throws {
        try await session.startScan()
        for await results in session.scanResultUpdates() where !results.isEmpty { break }
    }
}

/// The error of a session's call; the test fails if there is none.
func failure<Value>(
    _ body: () async throws -> Value,
    _ location: SourceLocation = #_sourceLocation
) async -> DeviceSessionError? {
    do {
        let value = try await body()
        Issue.record("no error, but \(value)", sourceLocation: location)
    } catch let error as DeviceSessionError {
        return error
    } catch {
        Issue.record("\(error)", sourceLocation: location)
    }
    return nil
}

/// Events as they come, from the moment of its making.
final class EventLog: Sendable {
    private let events = Locked<[DeviceEvent]>([])

    var all: [DeviceEvent] { events.withLock { $0 } }

    func add(_ event: DeviceEvent) { events.withLock { $0.append(event) } }

    var lines: [DeviceLine] { all.compactMap { if case .line(let line) = $0 { line } else { nil } } }

    var states: [SessionState] {
        all.compactMap { if case .connectionStateChanged(let state) = $0 { state } else { nil } }
    }
}
