// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio

@testable import DeviceSession

/// A peripheral with a UART, a battery and a name plate, that does what a script says.
final class ScriptedDevice: Sendable {
    /// What it does with a line that it is sent.
    typealias Script = @Sendable (_ line: String, _ device: ScriptedDevice) async -> Void

    static let advertisement = AdvertisementRequest(localName: "Meter", serviceUUIDs: [0xFFE0])
    static let incoming = LocalCharacteristicID(service: 0, characteristic: 0)
    static let outgoing = LocalCharacteristicID(service: 0, characteristic: 1)
    static let battery = LocalCharacteristicID(service: 1, characteristic: 0)

    let radio: SimulatedRadio
    let session: any PeripheralSession
    private let written = Locked<(packets: [[UInt8]], waiting: [Waiter])>(([], []))
    private let reader = Locked<Task<Void, Never>?>(nil)

    private struct Waiter {
        let count: Int
        let continuation: CheckedContinuation<[[UInt8]], Never>
    }

    /// Every packet that it has taken. One that was written without response may still be under way.
    var packets: [[UInt8]] { written.withLock { $0.packets } }

    /// Every packet, once there are so many.
    func packets(_ count: Int) async -> [[UInt8]] {
        await withCheckedContinuation { continuation in
            written.withLock { $0.waiting.append(Waiter(count: count, continuation: continuation)) }
            tellWhoWaits()
        }
    }

    private func took(_ packet: [UInt8]) {
        written.withLock { $0.packets.append(packet) }
        tellWhoWaits()
    }

    private func tellWhoWaits() {
        let (packets, ready) = written.withLock { state in
            let ready = state.waiting.filter { $0.count <= state.packets.count }
            state.waiting.removeAll { $0.count <= state.packets.count }
            return (state.packets, ready)
        }
        for waiter in ready { waiter.continuation.resume(returning: packets) }
    }

    static func uart(
        _ channel: DeviceProfile.Channel,
        writing properties: CharacteristicProperties = [.write, .writeWithoutResponse]
    ) -> LocalService {
        LocalService(
            channel.outgoing.service ?? 0xFFE0,
            characteristics: [
                LocalCharacteristic(channel.outgoing.characteristic, properties),
                LocalCharacteristic(channel.incoming.characteristic, .notify),
            ]
        )
    }

    static let batteryService = LocalService(0x180F, characteristics: [LocalCharacteristic(0x2A19, [.read, .notify])])
    static let namePlate = LocalService(
        0x180A,
        characteristics: [0x2A29, 0x2A24, 0x2A25, 0x2A27, 0x2A26, 0x2A23].map { LocalCharacteristic($0, .read) })
    /// The values of the name plate, in the order of its characteristics.
    static let plate: [[UInt8]] = [
        Array("Acme".utf8), Array("M1".utf8), Array("0042".utf8), Array("rev B".utf8), Array("1.2.3".utf8),
        [1, 2, 3, 4, 5, 6, 7, 8],
    ]

    init(
        on radio: SimulatedRadio,
        services: [LocalService] = [uart(.nordicUART), batteryService, namePlate],
        script: @escaping Script = { _, _ in }
    ) async throws {
        self.radio = radio
        session = try await radio.serve(services, advertising: Self.advertisement)
        let task = Task { [self] in
            var lines = LineAssembly(LineFormat())
            for await event in session.events {
                switch event {
                case .write(let request):
                    took(request.value)
                    await session.respond(to: request.id, with: .accept)
                    for case .line(let line) in lines.take(request.value, at: radio.clock.now) {
                        // Not awaited: a device hears while it thinks.
                        Task { await script(line, self) }
                    }
                case .read(let request):
                    await session.respond(to: request.id, with: Self.answer(request.characteristic))
                default:
                    break
                }
            }
        }
        reader.withLock { $0 = task }
    }

    private static func answer(_ id: LocalCharacteristicID) -> RequestResponse {
        if id == battery { return .value([87]) }
        if id.service == 2, plate.indices.contains(id.characteristic) { return .value(plate[id.characteristic]) }
        return .refuse(.readNotPermitted)
    }

    /// Says this, in one packet for each text.
    func say(_ texts: String...) async { await say(texts.map { Array($0.utf8) }) }

    func say(_ packets: [[UInt8]]) async {
        for packet in packets { try? await session.notify(packet, on: Self.outgoing, to: nil) }
    }

    func pause(_ duration: Duration) async { try? await radio.clock.sleep(for: duration) }

    func stop() async {
        await session.stop()
        reader.withLock { $0 }?.cancel()
    }
}

/// Answers like a modem: `OK` after a line for each command, `ERROR` to what it does not know.
func modem(_ line: String, _ device: ScriptedDevice) async {
    switch line {
    case "AT": await device.say("OK\r\n")
    case "AT+VERSION": await device.say("AT+VERSION\r\n", "1.2.3\r\n", "OK\r\n")
    case "AT+SLOW":
        await device.pause(.seconds(3))
        await device.say("slow\r\nOK\r\n")
    case "AT+SPLIT": await device.say("fir", "st\r", "\nsec", "ond\r\nO", "K\r", "\n")
    case "AT+CHATTY":
        for number in 1...50 { await device.say("line \(number)\r\n") }
        await device.say("OK\r\n")
    case "AT+RING": await device.say("before\r\n", "RING\r\n", "after\r\nOK\r\n")
    case "AT+SILENT": break
    case "AT+DROP": await device.radio.clock.sleepQuietly(.milliseconds(10))
    default: await device.say("ERROR\r\n")
    }
}

extension MonotonicClock {
    func sleepQuietly(_ duration: Duration) async { try? await sleep(for: duration) }
}
