// swift-tools-version: 6.1
// SPDX-License-Identifier: MIT

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "NearbyDiscoveryKit", path: "..")
    ],
    targets: [
        .executableTarget(
            name: "DBusRoundTrip",
            dependencies: [.product(name: "DBus", package: "NearbyDiscoveryKit")],
            swiftSettings: strict
        ),
        .executableTarget(name: "EmptyAsync", swiftSettings: strict),
        .systemLibrary(name: "CMalloc"),
        .executableTarget(
            name: "Joins",
            dependencies: [
                "CMalloc",
                .product(name: "NearbyDiscoveryKit", package: "NearbyDiscoveryKit"),
                .product(name: "SimulatedRadio", package: "NearbyDiscoveryKit"),
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
