// SPDX-License-Identifier: MIT

package import BluetoothLE

/// The protocol's words for what may be done with a characteristic.
package enum PropertyNames {
    private static let names: [(name: String, property: CharacteristicProperties)] = [
        ("read", .read), ("write", .write), ("writeWithoutResponse", .writeWithoutResponse), ("notify", .notify),
        ("indicate", .indicate),
    ]

    /// The five that the protocol knows; others have no word there.
    package static func texts(of properties: CharacteristicProperties) -> [String] {
        names.filter { properties.contains($0.property) }.map(\.name)
    }

    /// Words that are not known are left out.
    package static func properties(_ texts: [String]) -> CharacteristicProperties {
        CharacteristicProperties(names.filter { texts.contains($0.name) }.map(\.property))
    }
}
