// SPDX-License-Identifier: MIT

import BluetoothLE

/// One adapter and its stack.
struct AdapterRecord {
    let id: AdapterID
    let name: String
    let address: BluetoothAddress
    let peer: PeerIdentifier
    var configuration: AdapterConfiguration
    var isPowered = true
    var isPlugged = true
    var isServiceUp = true
    /// The daemon that used it has been killed; see `MediumState.abandon`.
    var isAbandoned = false

    var statusReaders: [UInt64: Mailbox<AdapterStatus>] = [:]
    var observers: [UInt64: @Sendable (AdapterObservation) -> Void] = [:]
    var scans: [ScanID: ScanRecord] = [:]
    var known: [PeerIdentifier: KnownPeer] = [:]
    var faults: [Fault] = []
    /// Characteristics that are not to be seen until then.
    var hidden: [BluetoothUUID: ContinuousClock.Instant] = [:]

    var isReady: Bool { isPowered && isPlugged && isServiceUp }

    /// Why the adapter is not ready, as a call would throw it.
    var unavailability: BluetoothError? {
        if !isServiceUp {
            return BluetoothError(
                .serviceUnavailable, "the Bluetooth service is not running", advice: "Start the Bluetooth service.",
                subject: name)
        }
        if !isPlugged {
            return BluetoothError(
                .adapterNotFound, "there is no such Bluetooth adapter", advice: "Plug the adapter in.", subject: name)
        }
        if !isPowered {
            return BluetoothError(
                .poweredOff, "the Bluetooth adapter is off", advice: "Switch Bluetooth on.", subject: name)
        }
        return nil
    }

    /// What an operation in progress ends with when the adapter stops being ready.
    var interruption: BluetoothError? {
        if !isServiceUp { return BluetoothError(.resetting, "the Bluetooth service went away", subject: name) }
        return unavailability
    }

    var status: AdapterStatus {
        if !isServiceUp { return AdapterStatus(.resetting, reason: interruption) }
        if !isPlugged { return AdapterStatus(.unsupported, reason: unavailability) }
        if !isPowered { return AdapterStatus(.poweredOff, adapter: name, address: address, reason: unavailability) }
        return AdapterStatus(.poweredOn, adapter: name, address: address)
    }

    /// Takes the first waiting fault that matches.
    mutating func takeFault<Value>(_ match: (Fault) -> Value?) -> Value? {
        for (index, fault) in faults.enumerated() {
            if let value = match(fault) {
                faults.remove(at: index)
                return value
            }
        }
        return nil
    }
}

/// A device that an adapter has heard of.
struct KnownPeer {
    let adapter: AdapterID
    var lastHeard: ContinuousClock.Instant
    var timer: MediumState.TimerID?
}

/// A scan of one adapter.
struct ScanRecord {
    let filter: ScanFilter
    let mailbox: Mailbox<ScanEvent>
    /// What each device has said during this scan.
    var seen: [PeerIdentifier: Advertisement] = [:]
    var reported: Set<PeerIdentifier> = []
}

/// How an adapter stops being ready.
enum Interruption {
    case powerOff
    case unplug
    case serviceLoss
}
