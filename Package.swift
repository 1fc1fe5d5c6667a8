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
    .library(name: "DeviceSession", targets: ["DeviceSession"]),
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
    .target(name: "DeviceSession", dependencies: ["BluetoothLE"], swiftSettings: strict),
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
        name: "DeviceSessionTests", dependencies: ["DeviceSession", "SimulatedRadio", "BluetoothLE"],
        swiftSettings: strict),
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
    // Only the command line's: apps bring their own way to show a code.
    .systemLibrary(name: "CQRencode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
    .target(name: "BlueZ", dependencies: ["DBus", "BluetoothLE"], swiftSettings: strict),
    .target(
        name: "BlueZSimulator",
        dependencies: ["DBus", "SimulatedRadio", "BluetoothLE"],
        swiftSettings: strict
    ),
    // Loads libedit (libedit-dev) when a line is edited.
    .target(name: "CEdit", linkerSettings: [.linkedLibrary("dl")]),
    .executableTarget(
        name: "nearby",
        dependencies: [
            "NearbyDiscoveryKit", "NearbyProtocol", "DeviceSession", "BlueZSimulator", "SimulatedRadio",
            "BluetoothLE", "DBus", "CQRencode", "CEdit", "EmulatorBridge",
            "BridgeRadio",
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
    .testTarget(
        name: "nearbyTests",
        dependencies: ["nearby", "DeviceSession", "BlueZSimulator", "SimulatedRadio", "BluetoothLE", "DBus"],
        swiftSettings: strict
    ),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "NearbyDiscoveryKit", "DeviceSession", "HandoffSuite", "ContractSuite", "BlueZ", "BlueZSimulator",
            "SimulatedRadio", "BluetoothLE", "DBus", "EmulatorBridge", "BridgeRadio",
        ],
        swiftSettings: strict
    ),
    // The same suites on a real bluetoothd: the lab (scripts/lab.sh) runs it in its guest.
    .executableTarget(
        name: "LabContract",
        dependencies: ["HandoffSuite", "ContractSuite", "EmulatorBridge", "BridgeRadio", "BlueZ", "BluetoothLE"],
        path: "Tests/LabContract",
        swiftSettings: strict
    ),
]
#endif

// Feeds the machines of NearbyProtocol, whose symbols are the package's own (Benchmarks/run.sh sealed).
if Context.environment["NEARBY_BENCHMARKS"] != nil {
    targets.append(
        .executableTarget(
            name: "SealedCost", dependencies: ["NearbyProtocol", "CSodium"], path: "Benchmarks/Sources/SealedCost",
            swiftSettings: strict
        ))
}

// The fuzz targets (scripts/fuzz.sh): they need the rooms' internal symbols and libFuzzer's run time, and an ordinary
// build must not know of them. The command line becomes a library there, since the program is libFuzzer's.
if Context.environment["NEARBY_FUZZ"] != nil, let nearby = targets.first(where: { $0.name == "nearby" }) {
    products.removeAll { $0.name == "nearby" }
    targets.removeAll { $0 === nearby }
    targets += [
        .target(
            name: "nearby", dependencies: nearby.dependencies, exclude: ["Nearby.swift"], swiftSettings: strict
        ),
        .systemLibrary(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
        .executableTarget(
            name: "NearbyFuzz",
            dependencies: [
                "CFuzzer", "nearby", "NearbyProtocol", "NearbyDiscoveryKit", "BlueZ", "BluetoothLE", "DBus",
                "BridgeRadio",
            ],
            path: "Tests/Fuzz/Targets",
            swiftSettings: strict,
            // gold fails on a link with both sanitizers.
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]
        ),
    ]
}

let package = Package(
    name: "NearbyDiscoveryKit",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: products,
    targets: targets,
    swiftLanguageModes: [.v6]
)
