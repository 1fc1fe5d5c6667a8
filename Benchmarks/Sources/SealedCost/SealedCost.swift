// SPDX-License-Identifier: MIT

import CSodium
import Glibc
import NearbyProtocol

/// What an extended exchange costs each side in CPU: both machines in one thread, without a radio. Prints the least
/// disturbed figures of so many exchanges as JSON.
@main
struct SealedCost {
    private static let appId = "com.example.cost"
    private static let session = "550e8400-e29b-41d4-a716-446655440000"
    /// Of the whole envelope.
    private static let bytes = 400

    static func main() throws {
        guard CommandLine.arguments.count == 2, let count = Int(CommandLine.arguments[1]), count > 0 else {
            let usage = Array("usage: SealedCost EXCHANGES\n".utf8)
            write(STDERR_FILENO, usage, usage.count)
            exit(2)
        }
        guard sodium_init() >= 0 else { exit(1) }
        var rows: [String] = []
        for (name, passcode) in [("no passcode", nil), ("passcode", "48291357")] {
            for mtu in [517, 185, 23] {
                var exchanges: [Exchange] = []
                // The first ones warm caches and the random generator up.
                for number in 0..<count + 20 {
                    let exchange = try Exchange(passcode: passcode, mtu: mtu)
                    if number >= 20 { exchanges.append(exchange) }
                }
                let keys = (0..<count).map { _ in publicKeyOperations() }
                rows.append(
                    #"{"security":"\#(name)","mtu":\#(mtu),"frames":\#(exchanges[0].frames),"#
                        + #""host_us":\#(exchanges.map(\.host)),"client_us":\#(exchanges.map(\.client)),"#
                        + #""keys_us":\#(keys)}"#)
            }
        }
        print("[\(rows.joined(separator: ",\n"))]")
    }

    /// The yardstick: what each side has to ask of libsodium at the least, a generator and two multiplications.
    private static func publicKeyOperations() -> Double {
        var hash = [UInt8](repeating: 0, count: 64)
        randombytes_buf(&hash, hash.count)
        var (point, share, shared) = (zeros, zeros, zeros)
        var scalar = zeros
        crypto_core_ristretto255_scalar_random(&scalar)
        let start = CPUTime.now()
        crypto_core_ristretto255_from_hash(&point, hash)
        let made = crypto_scalarmult_ristretto255(&share, scalar, point)
        let agreed = crypto_scalarmult_ristretto255(&shared, scalar, share)
        let end = CPUTime.now()
        precondition(made == 0 && agreed == 0)
        return end - start
    }

    private static var zeros: [UInt8] { [UInt8](repeating: 0, count: 32) }

    /// One exchange from hello to receipt, and what it took each side in microseconds.
    private struct Exchange {
        private(set) var host = 0.0
        private(set) var client = 0.0
        /// Both ways.
        private(set) var frames = 0

        init(passcode: String?, mtu: Int) throws {
            let now = ContinuousClock.now
            let code = try passcode.map { try Passcode($0) }
            let empty = Envelope.handoff(appId: appId, sessionId: session, payload: ["text": ""]).encoded().count
            let payload: JSONObject = ["text": .string(String(repeating: "t", count: bytes - empty))]
            var server = try ExtendedHostMachine(
                ExtendedHostConfiguration(
                    appId: appId, sessionId: session, payload: payload, profiles: HostProfiles(passcode: code)))
            var machine = try ExtendedExchangeMachine(
                1, with: "host",
                ExtendedClientConfiguration(appId: appId, profiles: ClientProfiles(passcode: code)), at: now)
            _ = server.centralConnected("client", at: now)
            var (isDone, isDelivered, request) = (false, false, UInt64(0))
            var toHost: [ExtendedClientAction] = []
            var toClient: [ExtendedHostAction] = []
            /// Charges the client with what it does about an input.
            func tell(_ input: ExtendedExchangeInput) {
                let start = CPUTime.now()
                let step = machine.handle(input, at: now)
                client += CPUTime.now() - start
                toHost += step.actions
                if case .handoff? = step.outcome { isDone = true }
            }
            func ask(_ body: (inout ExtendedHostMachine) -> [ExtendedHostAction]) {
                let start = CPUTime.now()
                let actions = body(&server)
                host += CPUTime.now() - start
                toClient += actions
            }
            tell(.connected)
            tell(.discovered([ServiceInstance(id: 1, hasMessage: true, hasHello: true)]))
            while !(toHost.isEmpty && toClient.isEmpty) {
                if !toHost.isEmpty {
                    request += 1
                    let id = RequestID(request)
                    switch toHost.removeFirst() {
                    case .readHello: ask { $0.readHello(id, from: "client", offset: 0, mtu: mtu, at: now) }
                    case .subscribe:
                        ask { $0.subscribed("client", mtu: mtu, at: now) }
                        tell(.subscribed(mtu: mtu))
                    case .write(_, _, let frame):
                        frames += 1
                        ask { $0.write(id, from: "client", frame, mtu: mtu, at: now) }
                    case .discover, .progress: break
                    }
                    continue
                }
                switch toClient.removeFirst() {
                case .answer(_, let hello): tell(.helloRead(hello))
                case .acknowledge: tell(.written)
                case .decide(let join): ask { $0.admissionDecided(join.id, .handoff(), at: now) }
                case .notify(let id, let frame, _):
                    frames += 1
                    tell(.notified(frame))
                    ask { $0.frameSent(id, at: now) }
                case .report(.delivered): isDelivered = true
                case .refuse, .cancelDecision, .report: break
                }
            }
            precondition(isDone && isDelivered, "the exchange did not end as it should")
        }
    }
}

/// This thread's CPU time in microseconds.
enum CPUTime {
    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}
