// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// org.bluez.Adapter1.
///
/// Source: src/adapter.c of BlueZ, doc/org.bluez.Adapter.rst.
@BlueZSimulatorActor
final class Adapter1: BusInterface {
    private let adapter: Adapter
    private var alias: String?
    private var isDiscoverable = false
    private var isPairable = false
    private var discoverableTimeout: UInt32 = 180
    private var pairableTimeout: UInt32 = 0
    nonisolated let declaration: ExportedInterface

    init(adapter: Adapter) {
        self.adapter = adapter
        declaration = Self.declare(adapter.profile)
    }

    func signal(_ names: [String]) {
        adapter.presence.changed(self, at: adapter.path, names)
    }

    func handle(_ call: MethodCall) {
        switch call.member {
        case "StartDiscovery": adapter.discovery.start(call)
        case "StopDiscovery": adapter.discovery.stop(call)
        case "SetDiscoveryFilter":
            answer(call) { () throws(ErrorReply) in
                guard let filter = call.arguments.first else { throw .invalidArguments }
                try adapter.discovery.setFilter(filter, client: call.sender)
            }
        case "GetDiscoveryFilters": call.reply([.strings(DiscoveryFilter.keys)])
        case "RemoveDevice": removeDevice(call)
        default: call.fail(.notSupported)
        }
    }

    private func answer(_ call: MethodCall, _ body: () throws(ErrorReply) -> Void) {
        do throws(ErrorReply) {
            try body()
            call.reply()
        } catch {
            call.fail(error)
        }
    }

    /// A connected device is disconnected first, which takes its time.
    private func removeDevice(_ call: MethodCall) {
        guard let path = call.arguments.first?.asObjectPath else { return call.fail(.invalidArguments) }
        guard let device = adapter.device(at: path) else { return call.fail(.doesNotExist) }
        guard adapter.isPowered else { return call.fail(.notReady) }
        device.isTemporary = true
        if device.isConnected {
            device.disconnect(call, removes: true)
        } else {
            adapter.remove(device)
            call.reply()
        }
    }

    func property(_ name: String) -> DBusValue? {
        switch name {
        case "Address": .string(adapter.address.description)
        case "AddressType": .string(adapter.address.kind.rawValue)
        case "Name": .string(systemName)
        case "Alias": .string(displayName)
        case "Class": .uint32(0)
        case "Powered": .bool(adapter.isPowered)
        case "PowerState": .string(adapter.isPowered ? "on" : "off")
        case "Discoverable": .bool(isDiscoverable)
        case "DiscoverableTimeout": .uint32(discoverableTimeout)
        case "Pairable": .bool(isPairable)
        case "PairableTimeout": .uint32(pairableTimeout)
        case "Discovering": .bool(adapter.discovery.isActive)
        case "UUIDs": .strings(adapter.server.advertisedUUIDs.map(\.longDescription))
        // The vendor is the Linux Foundation, the product bluetoothd, as in BlueZ's own.
        case "Modalias": .string("usb:v1D6Bp0246d05" + hex(adapter.profile.version.minor))
        case "Roles": .strings(["central", "peripheral"])
        case "Manufacturer": .uint16(0x05F1)
        case "Version": .byte(0x0D)
        default: nil
        }
    }

    private func hex(_ number: Int) -> String {
        let digits = String(number, radix: 16, uppercase: true)
        return digits.utf8.count < 2 ? "0" + digits : digits
    }

    /// As BlueZ: the host's name, and a number for the second adapter on.
    private var systemName: String { adapter.name == "hci0" ? "simulator" : "simulator \(adapter.name)" }

    var displayName: String { alias ?? systemName }

    func setProperty(_ name: String, to value: DBusValue) -> ErrorReply? {
        switch name {
        case "Powered":
            guard let powered = value.asBool else { return .invalidArguments }
            adapter.setPowered(powered)
            return nil
        case "Alias":
            guard let text = value.asString, text.utf8.count <= Limits.aliasBytes else { return .invalidArguments }
            alias = text.isEmpty ? nil : text
        case "Discoverable":
            guard let flag = value.asBool else { return .invalidArguments }
            guard adapter.isPowered else { return .failed("Not Powered") }
            isDiscoverable = flag
        case "Pairable": isPairable = value.asBool ?? isPairable
        case "DiscoverableTimeout": discoverableTimeout = value.asUInt32 ?? discoverableTimeout
        case "PairableTimeout": pairableTimeout = value.asUInt32 ?? pairableTimeout
        default: return .invalidArguments
        }
        signal([name])
        return nil
    }

    private nonisolated static func declare(_ profile: BehaviourProfile) -> ExportedInterface {
        var properties: [ExportedInterface.Property] = [
            .init("Address", "s"), .init("AddressType", "s"), .init("Name", "s"),
            .init("Alias", "s", access: .readWrite), .init("Class", "u"),
            .init("Powered", "b", access: .readWrite), .init("Discoverable", "b", access: .readWrite),
            .init("DiscoverableTimeout", "u", access: .readWrite), .init("Pairable", "b", access: .readWrite),
            .init("PairableTimeout", "u", access: .readWrite), .init("Discovering", "b"), .init("UUIDs", "as"),
            .init("Modalias", "s"), .init("Roles", "as"),
        ]
        if profile.hasPowerState { properties.append(.init("PowerState", "s")) }
        if profile.hasAdapterVersion { properties += [.init("Manufacturer", "q"), .init("Version", "y")] }
        return ExportedInterface(
            "org.bluez.Adapter1",
            methods: [
                .init("StartDiscovery"), .init("StopDiscovery"), .init("SetDiscoveryFilter", "a{sv}"),
                .init("GetDiscoveryFilters", returns: "as"), .init("RemoveDevice", "o"),
            ],
            properties: properties
        )
    }
}
