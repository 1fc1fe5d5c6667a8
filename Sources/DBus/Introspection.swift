// SPDX-License-Identifier: MIT

/// Writes introspection XML.
///
/// Source: D-Bus specification, "Introspection Data Format".
enum Introspection {
    private static let header = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">

        """

    private static let standard = [
        ExportedInterface(
            StandardInterface.introspectable,
            methods: [.init("Introspect", returns: "s", argumentNames: ["xml_data"])]),
        ExportedInterface(
            StandardInterface.peer, methods: [.init("Ping"), .init("GetMachineId", returns: "s")]),
    ]

    private static let properties = ExportedInterface(
        StandardInterface.properties,
        methods: [
            .init("Get", "ss", returns: "v", argumentNames: ["interface_name", "property_name", "value"]),
            .init("Set", "ssv", argumentNames: ["interface_name", "property_name", "value"]),
            .init("GetAll", "s", returns: "a{sv}", argumentNames: ["interface_name", "properties"]),
        ],
        signals: [.init("PropertiesChanged", "sa{sv}as")])

    private static let objectManager = ExportedInterface(
        StandardInterface.objectManager,
        methods: [.init("GetManagedObjects", returns: "a{oa{sa{sv}}}", argumentNames: ["objects"])],
        signals: [.init("InterfacesAdded", "oa{sa{sv}}"), .init("InterfacesRemoved", "oas")])

    static func xml(_ core: ConnectionCore, _ path: ObjectPath) -> String {
        var text = "\(header)<node>\n"
        for interface in standard { write(interface, to: &text) }
        if let record = core.objects[path] {
            write(properties, to: &text)
            for interface in record.interfaces { write(interface, to: &text) }
        }
        if core.objectManagers.contains(path) { write(objectManager, to: &text) }
        // Names are letters, digits, dots and underscores: nothing needs an escape.
        for child in core.children(of: path) { text += "  <node name=\"\(child)\"/>\n" }
        return text + "</node>\n"
    }

    private static func write(_ interface: ExportedInterface, to text: inout String) {
        text += "  <interface name=\"\(interface.name)\">\n"
        for method in interface.methods {
            text += "    <method name=\"\(method.name)\">\n"
            var names = method.argumentNames[...]
            arguments(method.input, "in", &names, &text)
            arguments(method.output, "out", &names, &text)
            if method.noReply { annotation("org.freedesktop.DBus.Method.NoReply", "true", &text) }
            text += "    </method>\n"
        }
        for signal in interface.signals {
            text += "    <signal name=\"\(signal.name)\">\n"
            for type in signal.signature.types { text += "      <arg type=\"\(type)\"/>\n" }
            text += "    </signal>\n"
        }
        for property in interface.properties {
            text += "    <property name=\"\(property.name)\" type=\"\(property.signature)\""
            text += " access=\"\(property.access.rawValue)\""
            guard property.emitsChange != .withValue else {
                text += "/>\n"
                continue
            }
            text += ">\n"
            annotation(
                "org.freedesktop.DBus.Property.EmitsChangedSignal", property.emitsChange.rawValue, &text)
            text += "    </property>\n"
        }
        text += "  </interface>\n"
    }

    private static func arguments(
        _ signature: Signature, _ direction: String, _ names: inout ArraySlice<String>, _ text: inout String
    ) {
        for type in signature.types {
            // A name that is no member name could break the XML.
            let name = names.popFirst().flatMap { Names.isMember($0) ? " name=\"\($0)\"" : nil } ?? ""
            text += "      <arg\(name) type=\"\(type)\" direction=\"\(direction)\"/>\n"
        }
    }

    private static func annotation(_ name: String, _ value: String, _ text: inout String) {
        text += "      <annotation name=\"\(name)\" value=\"\(value)\"/>\n"
    }
}
