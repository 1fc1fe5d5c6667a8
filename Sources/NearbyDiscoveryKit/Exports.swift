// SPDX-License-Identifier: MIT

// An app imports one module: the JSON types of payloads and the radio's vocabulary come with it.
@_exported public import BluetoothLE
@_exported public import NearbyProtocol
