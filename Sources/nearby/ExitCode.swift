// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// How `nearby` ends. 64 to 78 are those of sysexits.h where the meaning is the same.
enum ExitCode: Int32, CaseIterable, Sendable {
    case done = 0
    case usage = 64
    case unfitPayload = 65
    case unreadableFile = 66
    case serviceUnavailable = 69
    case internalFailure = 70
    case advertisingFailed = 71
    case noAdapter = 72
    case poweredOff = 73
    case outputFailed = 74
    case nothingFound = 75
    case linkFailed = 76
    case noPermission = 77
    case rejected = 79
    case wrongPasscode = 80
    case securityRequired = 81
    case hungUp = 129
    case interrupted = 130
    case outputClosed = 141
    case terminated = 143

    /// For the table in `--help` and in docs/cli.md.
    var meaning: String {
        switch self {
        case .done: "done"
        case .usage: "wrong option or value"
        case .unfitPayload: "the payload is no JSON object, or fits no profile"
        case .unreadableFile: "a file that was named cannot be read"
        case .serviceUnavailable: "no Bluetooth service: no bus or bridge, or bluetoothd does not run"
        case .internalFailure: "something that should not happen; please report it"
        case .advertisingFailed: "the system refuses to advertise"
        case .noAdapter: "no Bluetooth adapter, or not the one asked for"
        case .poweredOff: "the adapter is off or blocked"
        case .outputFailed: "the output cannot be written"
        case .nothingFound: "the time was up and nothing was found"
        case .linkFailed: "a host or device was found, and the exchange with it failed"
        case .noPermission: "the system does not let this user use Bluetooth"
        case .rejected: "the host said no"
        case .wrongPasscode: "the host did not accept the passcode"
        case .securityRequired: "a passcode is missing, or the host has none"
        case .hungUp: "the terminal went away (SIGHUP)"
        case .interrupted: "interrupted (Ctrl-C)"
        case .outputClosed: "the reader of the output went away"
        case .terminated: "terminated (SIGTERM)"
        }
    }

    init(_ code: NearbyError.Code) {
        self =
            switch code {
            case .invalidConfiguration: .usage
            case .payloadTooLarge: .unfitPayload
            case .adapterNotFound: .noAdapter
            case .poweredOff: .poweredOff
            case .unauthorized: .noPermission
            case .serviceUnavailable: .serviceUnavailable
            case .nothingFound: .nothingFound
            case .rejected: .rejected
            case .wrongPasscode: .wrongPasscode
            case .securityRequired: .securityRequired
            case .linkFailed: .linkFailed
            case .advertisingFailed: .advertisingFailed
            case .cancelled: .interrupted
            default: .internalFailure
            }
    }

    init(_ code: BluetoothError.Code) {
        self =
            switch code {
            case .adapterNotFound, .notSupported: .noAdapter
            case .poweredOff: .poweredOff
            case .unauthorized: .noPermission
            case .serviceUnavailable, .resetting, .timedOut, .busy, .limitExceeded: .serviceUnavailable
            case .advertisingFailed: .advertisingFailed
            case .invalidArgument: .usage
            case .cancelled: .interrupted
            case .internalFailure: .internalFailure
            default: .linkFailed
            }
    }

    /// How a command ends that this signal stopped.
    init(signal: Int32) {
        self = ExitCode(rawValue: 128 + signal) ?? .terminated
    }
}
