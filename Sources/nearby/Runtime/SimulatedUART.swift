// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio

/// A device for `nearby simulate --device`: Nordic's UART, a battery and a name plate, so that `nearby device` has
/// somebody to talk to. It answers each line with itself, `PING` with `PONG` and `VERSION` with its own.
final class SimulatedUART: Sendable {
    static let name = "nearby UART"

    private static let battery = LocalCharacteristicID(service: 1, characteristic: 0)
    private static let outgoing = LocalCharacteristicID(service: 0, characteristic: 1)
    private static let plate: [(UInt16, String)] = [
        (0x2A29, "NearbyDiscoveryKit"), (0x2A24, "Simulated UART"), (0x2A25, "0042"), (0x2A26, Program.version),
    ]

    let radio: SimulatedRadio
    private let session: any PeripheralSession
    private let serving: Task<Void, Never>

    init(in medium: SimulatedMedium) async throws(BluetoothError) {
        let radio = medium.addAdapter(name: "uart")
        let service = BluetoothUUID("6E400001-B5A3-F393-E0A9-E50E24DCCA9E") ?? 0x0001
        let services = [
            LocalService(
                service,
                characteristics: [
                    LocalCharacteristic(Self.uart(2), [.write, .writeWithoutResponse]),
                    LocalCharacteristic(Self.uart(3), .notify),
                ]
            ),
            LocalService(0x180F, characteristics: [LocalCharacteristic(0x2A19, [.read, .notify])]),
            LocalService(0x180A, characteristics: Self.plate.map { LocalCharacteristic(BluetoothUUID($0.0), .read) }),
        ]
        let session = try await radio.serve(
            services,
            advertising: AdvertisementRequest(localName: Self.name, serviceUUIDs: [service])
        )
        self.radio = radio
        self.session = session
        serving = Task {
            var splitter = LineSplitter()
            for await event in session.events {
                switch event {
                case .write(let request):
                    await session.respond(to: request.id, with: .accept)
                    for line in splitter.take(request.value) { await Self.answer(line, session, request.attMTU) }
                case .read(let request):
                    await session.respond(to: request.id, with: Self.value(request))
                default:
                    break
                }
            }
        }
    }

    func stop() async {
        serving.cancel()
        await session.stop()
    }

    private static func uart(_ number: Int) -> BluetoothUUID {
        BluetoothUUID("6E40000\(number)-B5A3-F393-E0A9-E50E24DCCA9E") ?? BluetoothUUID(UInt16(number))
    }

    private static func answer(_ line: String, _ session: any PeripheralSession, _ mtu: Int?) async {
        let text = line.last == "\r" ? String(line.dropLast()) : line
        let answer =
            switch text {
            case "PING": "PONG"
            case "VERSION": Program.version
            default: text
            }
        var rest = Array((answer + "\r\n").utf8)[...]
        while !rest.isEmpty {
            let packet = rest.prefix(max(20, (mtu ?? 23) - 3))
            rest = rest.dropFirst(packet.count)
            try? await session.notify(Array(packet), on: outgoing, to: nil)
        }
    }

    private static func value(_ request: ReadRequest) -> RequestResponse {
        if request.characteristic == battery { return .value([87]) }
        let index = request.characteristic.characteristic
        guard request.characteristic.service == 2, plate.indices.contains(index) else {
            return .refuse(.readNotPermitted)
        }
        let bytes = Array(plate[index].1.utf8)
        return request.offset <= bytes.count ? .value(Array(bytes.dropFirst(request.offset))) : .refuse(.invalidOffset)
    }
}
