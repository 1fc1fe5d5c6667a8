// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// A session with the device that the command line names: search, connect, do something, and leave nothing behind.
struct DeviceVisit {
    let way: DeviceWay
    var profile = DeviceProfile.none
    var configuration = DeviceSession.Configuration()
    let context: CommandContext
    /// Where the session's log goes with `--verbose`, if not to standard error.
    var log: (@Sendable (String) -> Void)?

    /// - Parameter gate: What has to be open before `body` is called.
    func run(
        until gate: SessionGate,
        _ body: (DeviceSession) async throws(Failure) -> Void
    ) async throws(Failure) {
        let radio: any Radio
        do throws(NearbyError) {
            radio = try await way.radio.radio(telling: context.console)
        } catch {
            throw Failure(error)
        }
        var configuration = configuration
        configuration.logger = ConsoleLogger(log: log ?? { [console = context.console] in console.detail($0) })
        let session: DeviceSession
        do throws(DeviceSessionError) {
            session = try DeviceSession(profile: profile, radio: radio, configuration: configuration)
        } catch {
            throw Failure(error)
        }
        var failure: Failure?
        do throws(Failure) {
            try await open(session, radio, gate)
            try await body(session)
        } catch {
            failure = error
        }
        context.console.status("Disconnecting…")
        // BlueZ keeps a link when a process dies: it is ours to take down, also when this task is cancelled.
        await session.teardown()
        context.console.clearStatus()
        if let failure { throw failure }
    }

    private func open(_ session: DeviceSession, _ radio: any Radio, _ gate: SessionGate) async throws(Failure) {
        do throws(BluetoothError) {
            let wait = RadioWait(radio: radio, policy: way.radio.whenUnavailable, context: context)
            try await wait.untilReady()
        } catch {
            throw Failure(error)
        }
        let target = way.target
        context.console.status("Looking for \(PlainText.quoted(target.text))…")
        let limit = TimeLimit(way.timeout, on: context.loop)
        let found = await limit.run { () async -> Result<ScanResult?, DeviceSessionError> in
            do throws(DeviceSessionError) {
                try await session.startScan(ScanRules(staleAfter: .seconds(60)))
            } catch {
                return .failure(error)
            }
            for await results in session.scanResultUpdates() {
                if let result = results.first(where: target.matches) { return .success(result) }
            }
            return .success(nil)
        }
        let result: ScanResult?
        do throws(DeviceSessionError) {
            result = try found.get()
        } catch {
            if !limit.isOver { throw Failure(error) }
            result = nil
        }
        guard let result else { throw Self.nothing(target, heard: session.scanResults.count) }
        context.console.status("Connecting to \(PlainText.printable(result.displayName))…")
        do throws(DeviceSessionError) {
            try await session.connect(id: result.id)
            try await session.waitUntil(gate, timeout: Limits.deviceReady)
        } catch {
            throw Failure(error)
        }
        context.console.clearStatus()
    }

    static func nothing(_ target: DeviceTarget, heard: Int) -> Failure {
        let others =
            switch heard {
            case 0: "no device was"
            case 1: "one other device was"
            default: "\(heard) other devices were"
            }
        return Failure(
            .nothingFound,
            code: NearbyError.Code.nothingFound.description,
            "\(PlainText.quoted(target.text)) was not heard; \(others)",
            advice: "`nearby device scan` lists what there is. A device that has a connection already is silent."
        )
    }
}

private struct ConsoleLogger: SessionLogger {
    let log: @Sendable (String) -> Void

    func log(_ entry: SessionLogEntry) { log(PlainText.printable(entry.message, limit: Limits.printedMessage)) }
}

extension Failure {
    init(_ error: DeviceSessionError) {
        let cause = error.cause
        let exitCode: ExitCode =
            switch error.code {
            case .radioUnavailable: cause.map { ExitCode($0.code) } ?? .serviceUnavailable
            case .invalidArgument: .usage
            case .peerNotFound: .nothingFound
            case .cancelled, .tornDown: .interrupted
            default: .linkFailed
            }
        var message = error.message
        if let cause, cause.message != message { message += ": \(cause.message)" }
        self.init(
            exitCode,
            code: error.code.description,
            message,
            advice: error.advice ?? cause?.advice,
            detail: cause?.cause
        )
    }
}
