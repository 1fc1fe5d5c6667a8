// swift-tools-version: 6.1
// SPDX-License-Identifier: MIT

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// Rooms that run wherever Swift runs. A room that speaks D-Bus is Linux-only and stands in the second list.
var products: [Product] = [
    .library(name: "NearbyDiscoveryKit", targets: ["NearbyDiscoveryKit"]),
    .library(name: "BluetoothLE", targets: ["BluetoothLE"]),
    .library(name: "SimulatedRadio", targets: ["SimulatedRadio"]),
    .library(name: "BridgeRadio", targets: ["BridgeRadio"]),
    .library(name: "EmulatorBridge", targets: ["EmulatorBridge"]),
]

var targets: [Target] = [
    .target(name: "BluetoothLE", swiftSettings: strict),
    .systemLibrary(
        name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
    .target(name: "JSON", swiftSettings: strict),
    .target(name: "NearbyProtocol", dependencies: ["JSON", "CSodium"], swiftSettings: strict),
    .target(name: "SimulatedRadio", dependencies: ["BluetoothLE"], swiftSettings: strict),
    .target(name: "BridgeRadio", dependencies: ["BluetoothLE", "JSON"], swiftSettings: strict),
    .target(name: "EmulatorBridge", dependencies: ["BridgeRadio", "BluetoothLE"], swiftSettings: strict),
    .target(
        name: "NearbyDiscoveryKit",
        dependencies: [
            "NearbyProtocol",
            "BluetoothLE",
            "BridgeRadio",
            .target(name: "BlueZ", condition: .when(platforms: [.linux])),
        ],
        swiftSettings: strict
    ),
    // What the BluetoothLE contract promises, as cases that any radio's tests can run.
    .target(
        name: "ContractSuite",
        dependencies: ["SimulatedRadio", "BluetoothLE"],
        path: "Tests/ContractSuite",
        swiftSettings: strict
    ),
    // What the two roles promise on top of it, over any radio.
    .target(
        name: "HandoffSuite",
        dependencies: ["ContractSuite", "NearbyDiscoveryKit", "BluetoothLE"],
        path: "Tests/HandoffSuite",
        swiftSettings: strict
    ),
    .testTarget(name: "BluetoothLETests", dependencies: ["BluetoothLE"], swiftSettings: strict),
    .testTarget(name: "NearbyProtocolTests", dependencies: ["NearbyProtocol"], swiftSettings: strict),
    .testTarget(
        name: "SimulatedRadioTests",
        dependencies: ["SimulatedRadio", "ContractSuite", "BluetoothLE"],
        swiftSettings: strict
    ),
    .testTarget(
        name: "NearbyDiscoveryKitTests",
        dependencies: [
            "NearbyDiscoveryKit", "NearbyProtocol", "HandoffSuite", "ContractSuite", "SimulatedRadio", "BluetoothLE",
        ],
        swiftSettings: strict
    ),
    .testTarget(
        name: "BridgeRadioTests",
        dependencies: [
            "BridgeRadio", "EmulatorBridge", "NearbyDiscoveryKit", "HandoffSuite", "ContractSuite", "SimulatedRadio",
            "BluetoothLE", "JSON",
        ],
        swiftSettings: strict
    ),
    .testTarget(
        name: "EmulatorBridgeTests",
        dependencies: ["EmulatorBridge", "BridgeRadio", "ContractSuite", "SimulatedRadio", "BluetoothLE", "JSON"],
        swiftSettings: strict
    ),
]

#if os(Linux)
products += [
    .library(name: "DBus", targets: ["DBus"]),
    .library(name: "BlueZ", targets: ["BlueZ"]),
    .executable(name: "nearby", targets: ["nearby"]),
]

targets += [
    .systemLibrary(name: "CDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
    .target(name: "DBus", dependencies: ["CDBus"], swiftSettings: strict),
    .target(name: "BlueZ", dependencies: ["DBus", "BluetoothLE"], swiftSettings: strict),
    .target(
        name: "BlueZSimulator",
        dependencies: ["DBus", "SimulatedRadio", "BluetoothLE"],
        swiftSettings: strict
    ),
    .executableTarget(
        name: "nearby",
        dependencies: [
            "NearbyDiscoveryKit", "NearbyProtocol", "BlueZSimulator", "SimulatedRadio", "BluetoothLE", "DBus",
            "EmulatorBridge", "BridgeRadio",
        ],
        swiftSettings: strict
    ),
    .testTarget(name: "DBusTests", dependencies: ["DBus", "CDBus"], swiftSettings: strict),
    .testTarget(name: "BlueZTests", dependencies: ["BlueZ", "DBus", "BluetoothLE"], swiftSettings: strict),
    .testTarget(
        name: "BlueZSimulatorTests",
        dependencies: ["BlueZSimulator", "SimulatedRadio", "DBus", "BluetoothLE"],
        swiftSettings: strict
    ),
    .testTarget(name: "nearbyTests", dependencies: ["nearby"], swiftSettings: strict),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "NearbyDiscoveryKit", "HandoffSuite", "ContractSuite", "BlueZ", "BlueZSimulator", "SimulatedRadio",
            "BluetoothLE", "DBus", "EmulatorBridge", "BridgeRadio",
        ],
        swiftSettings: strict
    ),
    // The same suites on a real bluetoothd: the lab (scripts/lab.sh) runs it in its guest.
    .executableTarget(
        name: "LabContract",
        dependencies: ["HandoffSuite", "ContractSuite", "BlueZ", "BluetoothLE"],
        path: "Tests/LabContract",
        swiftSettings: strict
    ),
]
#endif

let package = Package(
    name: "NearbyDiscoveryKit",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: products,
    targets: targets,
    swiftLanguageModes: [.v6]
)
