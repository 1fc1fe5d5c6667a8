// SPDX-License-Identifier: MIT

import BlueZ
import BluetoothLE
import BridgeRadio
import ContractSuite
import EmulatorBridge
import Glibc
import HandoffSuite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The contract's cases over BlueZ's room in the lab's guest, one a process: the lab's runner starts it, and gives it a
/// radio, a bluetoothd and a time limit.
///
///     LabContract list            the cases: suite, name, what each needs; separated by tabs
///     LabContract run NAME        exit status 0: held, 1: did not, 3: left out; the reason is on stdout
///
/// With `LAB_BRIDGED=1` each radio is used through a bridge of its own, over TCP.
@main
enum LabContract {
    static func main() async {
        var arguments = CommandLine.arguments.dropFirst()
        switch arguments.popFirst() {
        case "list":
            let suites = [
                ("contract", ContractCase.all), ("roles", ContractCase.handoff), ("bridged", ContractCase.all),
            ]
            for (suite, cases) in suites {
                for each in cases {
                    print(suite, each.name, each.needs.map(\.rawValue).sorted().joined(separator: ","), separator: "\t")
                }
            }
        case "run":
            let name = arguments.popFirst()
            guard let chosen = (ContractCase.all + ContractCase.handoff).first(where: { $0.name == name }) else {
                fail("no case \(name ?? "")", status: 2)
            }
            await run(chosen)
        default:
            fail("usage: LabContract list | run NAME", status: 2)
        }
    }

    private static func run(_ chosen: ContractCase) async {
        let environment = ProcessInfo.processInfo.environment
        let radios = ["hci0", "hci1"] + (environment["LAB_SECOND"].map { [$0] } ?? [])
        let isBridged = environment["LAB_BRIDGED"] == "1"
        let machines: [Machine]
        do {
            var made: [Machine] = []
            for radio in radios { made.append(try await Machine(adapter: radio, isBridged: isBridged)) }
            machines = made
        } catch {
            fail("the bridge does not start: \(error)", status: 1)
        }
        let stretch = environment["LAB_PATIENCE"].flatMap(Double.init) ?? 1
        let bench = ContractBench(
            name: "BlueZ " + (environment["LAB_BLUEZ"] ?? "") + (isBridged ? " through bridges" : ""),
            peripheral: machines[0].radio,
            central: machines[1].radio,
            secondCentral: machines.count > 2 ? machines[2].radio : nil,
            controls: LabControls(),
            patience: .seconds(20 * stretch),
            silence: .seconds(3)
        )
        let status: Int32
        do {
            switch try await chosen.run(on: bench) {
            case .held: status = 0
            case .differed(let reason):
                print("differs: \(reason)")
                status = 0
            case .leftOut(let reason):
                print(reason)
                status = 3
            }
        } catch {
            print(error)
            status = 1
        }
        for machine in machines { await machine.shutdown() }
        exit(status)
    }

    private static func fail(_ text: String, status: Int32) -> Never {
        print(text)
        exit(status)
    }
}

/// One adapter, with a bridge in front of it or without.
private struct Machine {
    let bluez: BlueZRadio
    let bridge: (server: EmulatorBridge, client: BridgeRadio)?

    init(adapter: String, isBridged: Bool) async throws {
        bluez = BlueZRadio(BlueZConfiguration(adapter: adapter))
        guard isBridged else {
            bridge = nil
            return
        }
        let server = try EmulatorBridge(
            radios: .shared(bluez),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
        bridge = (server, BridgeRadio(try await server.start()))
    }

    var radio: any Radio { bridge?.client ?? bluez }

    func shutdown() async {
        if let bridge {
            await bridge.client.shutdown()
            await bridge.server.stop()
        }
        await bluez.shutdown()
    }
}
