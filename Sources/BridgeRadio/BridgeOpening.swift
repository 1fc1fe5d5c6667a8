// SPDX-License-Identifier: MIT

import BluetoothLE

/// How a connection to a bridge comes about. Ends also where the task is cancelled.
struct BridgeOpening: Sendable {
    /// What the bridge has said of itself.
    struct Greeting: Sendable {
        let wire: BridgeCore.Wire
        let status: AdapterStatus
        let scope: NotificationScope
    }

    let endpoint: BridgeEndpoint
    /// What the bridge is shown if it wants a token.
    let token: String?
    /// How long it has for its greeting, once connected.
    var patience = BridgeLimits.greeting

    /// Connects, waits for the greeting, and asks for the extension.
    func greeting() async -> Result<Greeting, BluetoothError> {
        let descriptor: Int32
        switch await SocketConnector.connect(to: endpoint) {
        case .success(let opened): descriptor = opened
        case .failure(let failure):
            return .failure(
                BluetoothError(
                    .serviceUnavailable, "the bridge at \(endpoint) cannot be reached: \(failure.words)",
                    advice: "Start one where the Bluetooth adapter is: `nearby bridge`. Is the address right?"))
        }
        let socket: LineSocket
        do throws(BluetoothError) {
            socket = try LineSocket(descriptor: descriptor)
        } catch {
            return .failure(error)
        }
        let isLate = Locked(false)
        let impatience = Task {
            try? await Task.sleep(for: patience)
            guard !Task.isCancelled else { return }
            isLate.withLock { $0 = true }
            socket.close()
        }
        let result = await greet(socket, isLate)
        impatience.cancel()
        if case .failure = result { socket.close() }
        return result
    }

    private func greet(_ socket: LineSocket, _ isLate: Locked<Bool>) async -> Result<Greeting, BluetoothError> {
        var isExtended = false
        var latest = AdapterStatus(.unknown)
        while true {
            let line: [UInt8]
            switch await socket.next() {
            case .line(let next): line = next
            case .tooLong: return .failure(noBridge("is no bridge"))
            case nil where isLate.withLock({ $0 }):
                return .failure(noBridge("has not greeted as a bridge does within \(patience)"))
            case nil: return .failure(noBridge("hung up before it had greeted as a bridge does"))
            }
            let message: BridgeMessage
            do throws(BridgeMessageError) {
                message = try BridgeMessage(line: line)
            } catch {
                if error.code == .unknown { continue }
                return .failure(noBridge("is no bridge"))
            }
            switch message.event {
            case .bridgeReady(let version, _, let status, let extensionVersion, let wantsToken):
                if let refusal = refusal(version, wantsToken) { return .failure(refusal) }
                latest = status
                isExtended = extensionVersion != nil
                guard isExtended else {
                    let wire = BridgeCore.Wire(socket: socket, isExtended: false)
                    return .success(Greeting(wire: wire, status: latest, scope: .central))
                }
                let hello = BridgeCommand.hello(version: BridgeLimits.extensionVersion, token: wantsToken ? token : nil)
                socket.send(BridgeRequest(hello, id: "hello").line())
            case .bluetoothStateChanged(let status):
                // Told when the bridge has answered: before, it leaves out why.
                latest = status
            case .done(_, let isBroadcast):
                let wire = BridgeCore.Wire(socket: socket, isExtended: isExtended)
                let scope: NotificationScope = isBroadcast == false ? .central : .allSubscribers
                return .success(Greeting(wire: wire, status: latest, scope: scope))
            case .error(let error, _):
                return .failure(error)
            default:
                continue
            }
        }
    }

    private func refusal(_ version: Int, _ wantsToken: Bool) -> BluetoothError? {
        guard version == BridgeLimits.protocolVersion else {
            return BluetoothError(.notSupported, "the bridge at \(endpoint) speaks version \(version)")
        }
        guard wantsToken, token == nil else { return nil }
        return BluetoothError(
            .unauthorized, "the bridge at \(endpoint) wants a token", advice: "Ask whoever runs it, and pass it on.")
    }

    private func noBridge(_ why: String) -> BluetoothError {
        BluetoothError(
            .serviceUnavailable, "what answers at \(endpoint) \(why)",
            advice: "Is the port right? A bridge listens on \(BridgeEndpoint.defaultPort), by an older text on 7788.")
    }
}
