// swift-tools-version: 6.1
// SPDX-License-Identifier: MIT

import PackageDescription

let package = Package(
    name: "JoinApp",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "NearbyDiscoveryKit", path: "../..")],
    targets: [
        .executableTarget(
            name: "JoinApp",
            dependencies: [.product(name: "NearbyDiscoveryKit", package: "NearbyDiscoveryKit")]
        )
    ],
    swiftLanguageModes: [.v6]
)
