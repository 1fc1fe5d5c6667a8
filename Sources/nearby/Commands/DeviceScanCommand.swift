// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// `nearby device scan`: which devices there are to talk to.
struct DeviceScanCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "device scan",
        summary: "list devices nearby, sorted and filtered",
        synopsis: "[OPTIONS]",
        options: [
            .value("name", "n", "PREFIX", "only devices whose name begins with PREFIX"),
            .value("service", nil, "UUID", repeatable: true, "only devices that advertise it, such as FFE0"),
            .value("address", nil, "ADDRESS", "only this one: its address, or one in its manufacturer data"),
            .value("min-rssi", nil, "DBM", "leave out devices whose signal is weaker, -127 to 0, such as -60"),
            .value("sort", nil, "HOW", "signal, name or seen (default: signal)"),
            .value("timeout", "t", "TIME", "end after TIME, such as 10s (default: scan until Ctrl-C)"),
        ] + OptionSpec.radio + OptionSpec.output,
        notes: [
            "On a terminal the list is redrawn in place, and a device leaves it that was not heard for 10 s; elsewhere "
                + "a line is printed for each device that comes, and again when its name or services have changed."
        ],
        examples: ["nearby device scan", "nearby device scan --name Meter --min-rssi -70 --timeout 10s --json"]
    )

    let output: OutputOptions
    let rules: ScanRules
    let timeout: Duration?
    let radio: RadioOptions

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        radio = try RadioOptions(values)
        timeout = try values.value("timeout", as: .time)
        var services: Set<BluetoothUUID> = []
        for text in values.texts("service") {
            guard let uuid = ValueType<BluetoothUUID>.bluetoothUUID.read(text) else {
                throw .usage(option: "service", "\(PlainText.quoted(text)) is not a UUID such as FFE0")
            }
            services.insert(uuid)
        }
        rules = ScanRules(
            namePrefix: values.texts("name").first,
            minimumRSSI: try values.value("min-rssi", as: .rssi),
            services: services,
            address: try values.value("address", as: .address),
            order: try values.value("sort", as: .scanOrder) ?? .strongestFirst
        )
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let radio: any Radio
        let session: DeviceSession
        do {
            radio = try await self.radio.radio(telling: context.console)
            session = try DeviceSession(profile: .none, radio: radio)
        } catch let error as NearbyError {
            throw Failure(error)
        } catch {
            throw .internal("\(error)")
        }
        let limit = TimeLimit(timeout, on: context.loop)
        let seen = Guarded<[PeerIdentifier: Told]>([:])
        let failure = await limit.run { [self] () async -> Failure? in
            do throws(BluetoothError) {
                let wait = RadioWait(radio: radio, policy: self.radio.whenUnavailable, context: context)
                try await wait.untilReady()
            } catch {
                return Failure(error)
            }
            do throws(DeviceSessionError) {
                try await session.startScan(rules)
            } catch {
                return Failure(
                    error.code == .cancelled ? .init(.radioUnavailable, "no scan was started in time") : error)
            }
            context.console.status("Scanning… (Ctrl-C ends)")
            for await results in session.scanResultUpdates() { show(results, seen, context) }
            return nil
        }
        await session.teardown()
        context.console.clearStatus()
        if let failure { throw failure }
        guard seen.withLock({ $0.isEmpty }), limit.isOver else { return .done }
        throw Failure(
            .nothingFound, code: NearbyError.Code.nothingFound.description, "no such device was heard",
            advice: "Ask for less, or come closer.")
    }

    /// What a line said of a device.
    private struct Told: Equatable {
        var name: String?
        var services: Set<BluetoothUUID>
    }

    private func show(_ results: [ScanResult], _ seen: Guarded<[PeerIdentifier: Told]>, _ context: CommandContext) {
        let new = seen.withLock { seen in
            results.filter { result in
                let told = Told(name: result.name, services: result.advertisement.serviceUUIDs)
                let before = seen[result.id]
                guard told != before, before != nil || seen.count < Limits.devicesCounted else { return false }
                seen[result.id] = told
                return true
            }
        }
        if output.json {
            context.console.results(new.map { JSONLine.text(DeviceReport.json($0)) })
        } else if context.console.outputIsTerminal {
            context.console.block(DeviceReport.table(results))
        } else {
            context.console.results(new.map(DeviceReport.line))
        }
    }
}

extension ValueType<ScanRules.Order> {
    static var scanOrder: Self {
        Self(expected: "signal, name or seen") { text in
            switch text {
            case "signal": .strongestFirst
            case "name": .byName
            case "seen": .firstSeenFirst
            default: nil
            }
        }
    }
}
