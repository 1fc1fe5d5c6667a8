// SPDX-License-Identifier: MIT

internal import DBus

/// org.bluez.AgentManager1: agents are taken and never asked, for nothing here pairs.
///
/// Source: src/agent.c of BlueZ, doc/org.bluez.AgentManager.rst.
@BlueZSimulatorActor
final class AgentManager1: BusInterface {
    private var agents: [String: ObjectPath] = [:]
    nonisolated let declaration = ExportedInterface(
        "org.bluez.AgentManager1",
        methods: [.init("RegisterAgent", "os"), .init("UnregisterAgent", "o"), .init("RequestDefaultAgent", "o")]
    )

    init() {}

    func property(_ name: String) -> DBusValue? { nil }

    func clientGone(_ client: String) {
        agents[client] = nil
    }

    func handle(_ call: MethodCall) {
        guard let path = call.arguments.first?.asObjectPath else { return call.fail(.invalidArguments) }
        switch call.member {
        case "RegisterAgent":
            let capability = call.arguments.last?.asString ?? ""
            let known = ["", "DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay"]
            guard known.contains(capability) else { return call.fail(.invalidArguments) }
            guard agents[call.sender] == nil else { return call.fail(.alreadyExists) }
            guard agents.count < Limits.agents else { return call.fail(.failed("Too many agents")) }
            agents[call.sender] = path
        case "UnregisterAgent":
            guard agents[call.sender] == path else { return call.fail(.doesNotExist) }
            agents[call.sender] = nil
        default:
            guard agents[call.sender] == path else { return call.fail(.doesNotExist) }
        }
        call.reply()
    }
}
