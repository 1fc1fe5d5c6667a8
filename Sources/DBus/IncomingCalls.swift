// SPDX-License-Identifier: MIT

import CDBus

/// The head of a call that is being answered.
struct IncomingCall: Sendable {
    let serial: UInt32
    let sender: String?
    let path: ObjectPath
    let interface: String?
    let member: String
    let signature: String
    let wantsAnswer: Bool
}

extension ConnectionCore {
    func receiveCall(_ raw: OpaquePointer) {
        guard let path = MessageReader.text(dbus_message_get_path(raw)),
            let member = MessageReader.text(dbus_message_get_member(raw))
        else { return }
        let call = IncomingCall(
            serial: dbus_message_get_serial(raw),
            sender: MessageReader.text(dbus_message_get_sender(raw)),
            path: ObjectPath(trusted: path),
            interface: MessageReader.text(dbus_message_get_interface(raw)),
            member: member,
            signature: MessageReader.text(dbus_message_get_signature(raw)) ?? "",
            wantsAnswer: dbus_message_get_no_reply(raw) == 0)
        do throws(DBusError) {
            if let values = try answer(call, raw) { send(.success(values), to: call) }
        } catch {
            send(.failure(error), to: call)
        }
    }

    /// - Returns: the answer, or nil if the object will answer itself.
    private func answer(_ call: IncomingCall, _ raw: OpaquePointer) throws(DBusError) -> [DBusValue]? {
        if call.interface == StandardInterface.peer { return try answerPeer(call) }
        guard exists(call.path) else {
            throw DBusError(name: ErrorName.unknownObject, message: "there is no object \(call.path)")
        }
        switch call.interface {
        case StandardInterface.introspectable:
            try expect(call, "Introspect", "")
            return [.string(Introspection.xml(self, call.path))]
        case StandardInterface.properties:
            return try answerProperties(call, raw)
        case StandardInterface.objectManager where objectManagers.contains(call.path):
            try expect(call, "GetManagedObjects", "")
            return [try managedObjects(beneath: call.path)]
        default:
            try hand(call, raw)
            return nil
        }
    }

    private func expect(_ call: IncomingCall, _ member: String, _ signature: String) throws(DBusError) {
        guard call.member == member else { throw unknownMethod(call) }
        guard call.signature == signature else { throw wrongSignature(call, signature) }
    }

    private func unknownMethod(_ call: IncomingCall) -> DBusError {
        let interface = call.interface.map { "\($0)." } ?? ""
        return DBusError(
            name: ErrorName.unknownMethod, message: "there is no method \(interface)\(call.member) at \(call.path)")
    }

    private func wrongSignature(_ call: IncomingCall, _ expected: String) -> DBusError {
        DBusError(
            name: ErrorName.invalidArguments,
            message: "\(call.member) takes \"\(expected)\", not \"\(call.signature)\"")
    }

    private func answerPeer(_ call: IncomingCall) throws(DBusError) -> [DBusValue] {
        guard call.member == "GetMachineId" else {
            try expect(call, "Ping", "")
            return []
        }
        guard call.signature.isEmpty else { throw wrongSignature(call, "") }
        var error = CDBus.DBusError()
        dbus_error_init(&error)
        guard let id = dbus_try_get_local_machine_id(&error) else {
            defer { dbus_error_free(&error) }
            throw DBusError(name: ErrorName.failed, message: MessageReader.text(error.message) ?? "no machine id")
        }
        defer { dbus_free(id) }
        return [.string(String(cString: id))]
    }

    private func answerProperties(_ call: IncomingCall, _ raw: OpaquePointer) throws(DBusError) -> [DBusValue] {
        switch call.member {
        case "Get": try expect(call, "Get", "ss")
        case "GetAll": try expect(call, "GetAll", "s")
        default: try expect(call, "Set", "ssv")
        }
        let arguments = try MessageReader.body(of: raw)
        let interfaceName = arguments[0].asString ?? ""
        guard let record = objects[call.path] else {
            // A node that is only on the way to objects, or only a manager, has no properties.
            if call.member == "GetAll" { return [.variantDictionary([:])] }
            throw DBusError(name: ErrorName.unknownProperty, message: "\(call.path) has no properties")
        }
        guard let interface = record.interface(interfaceName) else {
            if call.member == "GetAll", StandardInterface.all.contains(interfaceName) {
                return [.variantDictionary([:])]
            }
            throw DBusError(
                name: ErrorName.unknownInterface, message: "\(call.path) has no interface \(interfaceName)")
        }
        guard call.member != "GetAll" else { return [try record.properties(of: interface)] }
        let name = arguments[1].asString ?? ""
        guard let property = interface.properties.first(where: { $0.name == name }) else {
            throw DBusError(name: ErrorName.unknownProperty, message: "there is no \(interfaceName).\(name)")
        }
        if call.member == "Get" {
            guard let value = try record.value(property, of: interfaceName) else {
                throw DBusError(name: ErrorName.unknownProperty, message: "\(interfaceName).\(name) has no value now")
            }
            return [.variant(value)]
        }
        guard property.access != .read else {
            throw DBusError(name: ErrorName.propertyReadOnly, message: "\(interfaceName).\(name) cannot be set")
        }
        guard case .variant(let value) = arguments[2], BodyCheck.isOf(value, property.signature) else {
            throw DBusError(
                name: ErrorName.invalidArguments, message: "\(interfaceName).\(name) is a \(property.signature)")
        }
        if let error = record.object.setProperty(name, of: interfaceName, to: value) { throw error }
        return []
    }

    private func hand(_ call: IncomingCall, _ raw: OpaquePointer) throws(DBusError) {
        guard let record = objects[call.path],
            let interface = call.interface ?? record.interfaceName(having: call.member),
            let method = record.method(call.member, of: interface)
        else { throw unknownMethod(call) }
        guard call.signature == method.input.string else { throw wrongSignature(call, method.input.string) }
        guard unanswered < Limits.unansweredCalls else {
            throw DBusError(
                name: ErrorName.limitsExceeded, message: "\(Limits.unansweredCalls) calls are not answered yet")
        }
        let arguments = try MessageReader.body(of: raw)
        unanswered += 1
        let output = method.output
        record.object.handle(
            MethodCall(
                sender: call.sender ?? "", path: call.path, interface: interface, member: call.member,
                arguments: arguments,
                answer: { [weak self] result in
                    self?.onLoop { core in
                        core.unanswered -= 1
                        core.send(result, to: call, output: output)
                    }
                }))
    }

    private func send(
        _ result: Result<[DBusValue], DBusError>, to call: IncomingCall, output: Signature? = nil
    ) {
        guard call.wantsAnswer, connection != nil else { return }
        do throws(DBusError) {
            let values = try result.get()
            if let output, !ConnectionCore.isOf(values, output) {
                let found = values.map { $0.signature.string }.joined()
                throw DBusError(
                    name: ErrorName.failed, message: "\(call.member) answered \"\(found)\", not \"\(output)\"")
            }
            transmitAnswer(try .reply(to: call.serial, call.sender, values))
        } catch {
            do throws(DBusError) {
                transmitAnswer(try .failure(to: call.serial, call.sender, error))
            } catch {
                end(error)
            }
        }
    }

    private static func isOf(_ values: [DBusValue], _ signature: Signature) -> Bool {
        switch values.count {
        case 0: signature.string.isEmpty
        case 1: BodyCheck.isOf(values[0], signature)
        default: values.map { $0.signature.string }.joined() == signature.string
        }
    }
}
