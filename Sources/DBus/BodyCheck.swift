// SPDX-License-Identifier: MIT

/// Walks over values before they go to libdbus, which ends the process on a wrong one, and counts what they take, since
/// a bus ends the connection that sends it too much.
///
/// Source of sizes and alignments: D-Bus specification, "Marshaling".
struct BodyCheck {
    /// Bytes of the body so far.
    private var bytes = 0
    /// File descriptors so far.
    private var descriptors = 0
    /// What the header leaves of a message.
    private let room: Int

    private init(header: Int) {
        room = Limits.messageBytes - header
    }

    /// Checks a body that goes out behind a header.
    ///
    /// - Parameter header: its bytes, by ``headerBytes(path:interface:member:destination:)``.
    /// - Throws: ``DBusError/Code/invalidArgument`` or ``DBusError/Code/limitExceeded``.
    static func check(_ body: [DBusValue], header: Int) throws(DBusError) {
        var check = BodyCheck(header: header)
        try check.add(0, alignment: 1)
        // All but containers have one letter or, as arrays of bytes, two.
        var needsSignature = body.count > Limits.signatureBytes / 2
        for value in body {
            try check.visit(value, depth: 0)
            if !needsSignature, check.isContainer(value) { needsSignature = true }
        }
        if needsSignature {
            try check.checkSignature(Signature(trusted: body.map { $0.signature.string }.joined()))
        }
    }

    /// The bytes that a message's header takes at most. A path is as long as whoever named it to us likes, so they are
    /// counted.
    ///
    /// Source: D-Bus specification, "Message Format".
    static func headerBytes(
        path: String? = nil, interface: String? = nil, member: String? = nil, destination: String?
    ) -> Int {
        // Each field begins at a multiple of 8, and so does the body. A text has its code, type, length and NUL with it.
        func field(_ text: String?) -> Int { text.map { (9 + $0.utf8.count + 7) & ~7 } ?? 0 }
        // What every message begins with; and whatever it needs of a signature, here at its longest, the number of
        // file descriptors, and the serial of the call that it answers.
        let others = 16 + 264 + 8 + 8
        return others + field(path) + field(interface) + field(member) + field(destination)
    }

    private func isContainer(_ value: DBusValue) -> Bool {
        switch value {
        case .array, .dictionary, .structure: true
        default: false
        }
    }

    private func checkSignature(_ signature: Signature) throws(DBusError) {
        guard Signature.isValid(signature.string) else {
            let text = signature.string.clipped(toBytes: Limits.quotedBytes)
            throw DBusError(.invalidArgument, "too long, too deep or not a type: \(text)")
        }
    }

    private mutating func add(_ count: Int, alignment: Int) throws(DBusError) {
        bytes = ((bytes + alignment - 1) & ~(alignment - 1)) + count
        guard bytes <= room else {
            throw DBusError(
                .limitExceeded,
                "over \(Limits.messageBytes) bytes in a message, its header included: a bus does not take it",
                advice: "send less at once")
        }
    }

    private mutating func visit(_ value: DBusValue, depth: Int) throws(DBusError) {
        switch value {
        case .byte: try add(1, alignment: 1)
        case .int16, .uint16: try add(2, alignment: 2)
        case .bool, .int32, .uint32: try add(4, alignment: 4)
        case .int64, .uint64, .double: try add(8, alignment: 8)
        case .string(let text):
            guard !text.utf8.contains(0) else { throw DBusError(.invalidArgument, "a D-Bus string cannot hold NUL") }
            try add(5 + text.utf8.count, alignment: 4)
        case .objectPath(let path): try add(5 + path.string.utf8.count, alignment: 4)
        case .signature(let signature): try add(2 + signature.string.utf8.count, alignment: 1)
        case .unixFD(let descriptor):
            guard descriptor.number >= 0 else { throw DBusError(.invalidArgument, "not an open file descriptor") }
            descriptors += 1
            guard descriptors <= Limits.messageFDs else {
                throw DBusError(
                    .limitExceeded,
                    "more than \(Limits.messageFDs) file descriptors in a message: a bus does not take it",
                    advice: "send fewer at once")
            }
            try add(4, alignment: 4)
        case .bytes(let content): try add(4 + content.count, alignment: 4)
        case .array(of: let element, let elements):
            try container(depth)
            try visitArray(of: element, elements, depth: depth)
        case .dictionary(key: let key, value: let type, let entries):
            try container(depth)
            try visitDictionary(key: key, value: type, entries, depth: depth)
        case .structure(let members):
            try container(depth)
            guard !members.isEmpty else { throw DBusError(.invalidArgument, "a D-Bus structure cannot be empty") }
            try add(0, alignment: 8)
            for member in members { try visit(member, depth: depth + 1) }
        case .variant(let inner):
            try container(depth)
            let signature = inner.signature
            if isContainer(inner) { try checkSignature(signature) }
            try add(2 + signature.string.utf8.count, alignment: 1)
            try visit(inner, depth: depth + 1)
        }
    }

    private func container(_ depth: Int) throws(DBusError) {
        guard depth < Limits.totalNesting else {
            throw DBusError(.limitExceeded, "values nested deeper than \(Limits.totalNesting)")
        }
    }

    private mutating func visitArray(
        of element: Signature, _ elements: [DBusValue], depth: Int
    ) throws(DBusError) {
        guard element.isSingle, element != .byte || elements.isEmpty else {
            let advice = element == .byte ? "use .bytes" : nil
            throw DBusError(.invalidArgument, "not the type of an array's elements: \(element)", advice: advice)
        }
        try add(4, alignment: 4)
        try add(0, alignment: BodyCheck.alignment(of: element))
        let start = bytes
        for value in elements {
            guard BodyCheck.isOf(value, element) else {
                throw DBusError(.invalidArgument, "a \(value.signature) in an array of \(element)")
            }
            try visit(value, depth: depth + 1)
        }
        guard bytes - start <= Limits.arrayBytes else { throw DBusError(.limitExceeded, "an array over 64 MiB") }
    }

    private mutating func visitDictionary(
        key: Signature, value type: Signature, _ entries: [DBusEntry], depth: Int
    ) throws(DBusError) {
        guard key.string.utf8.count == 1, let code = key.string.utf8.first, SignatureParser.isBasic(code),
            type.isSingle
        else { throw DBusError(.invalidArgument, "not the types of a dictionary: \(key), \(type)") }
        try add(4, alignment: 4)
        try add(0, alignment: 8)
        let start = bytes
        for entry in entries {
            guard BodyCheck.isOf(entry.key, key), BodyCheck.isOf(entry.value, type) else {
                throw DBusError(
                    .invalidArgument,
                    "an entry of \(entry.key.signature), \(entry.value.signature) in a dictionary of \(key), \(type)")
            }
            try add(0, alignment: 8)
            // An entry counts as a container of its own.
            try container(depth + 1)
            try visit(entry.key, depth: depth + 2)
            try visit(entry.value, depth: depth + 2)
        }
        guard bytes - start <= Limits.arrayBytes else { throw DBusError(.limitExceeded, "a dictionary over 64 MiB") }
    }

    /// Whether a value has a given type, cheaply for those that are not containers.
    static func isOf(_ value: DBusValue, _ signature: Signature) -> Bool {
        switch value {
        case .array, .dictionary, .structure, .bytes: value.signature == signature
        default: signature.string.utf8.count == 1 && signature.string.utf8.first == value.typeCode
        }
    }

    private static func alignment(of signature: Signature) -> Int {
        switch signature.string.utf8.first {
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        default: 4
        }
    }
}
