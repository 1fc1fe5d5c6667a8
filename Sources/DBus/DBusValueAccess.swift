// SPDX-License-Identifier: MIT

// Readers look through variants: `asString` of a variant that holds a string is that string.
extension DBusValue {
    /// The value inside all variants around it.
    public var unwrapped: DBusValue {
        var value = self
        while case .variant(let inner) = value { value = inner }
        return value
    }

    public var asString: String? {
        if case .string(let value) = unwrapped { value } else { nil }
    }

    public var asObjectPath: ObjectPath? {
        if case .objectPath(let value) = unwrapped { value } else { nil }
    }

    public var asSignature: Signature? {
        if case .signature(let value) = unwrapped { value } else { nil }
    }

    public var asBool: Bool? {
        if case .bool(let value) = unwrapped { value } else { nil }
    }

    public var asByte: UInt8? {
        if case .byte(let value) = unwrapped { value } else { nil }
    }

    public var asInt16: Int16? {
        if case .int16(let value) = unwrapped { value } else { nil }
    }

    public var asUInt16: UInt16? {
        if case .uint16(let value) = unwrapped { value } else { nil }
    }

    public var asInt32: Int32? {
        if case .int32(let value) = unwrapped { value } else { nil }
    }

    public var asUInt32: UInt32? {
        if case .uint32(let value) = unwrapped { value } else { nil }
    }

    public var asInt64: Int64? {
        if case .int64(let value) = unwrapped { value } else { nil }
    }

    public var asUInt64: UInt64? {
        if case .uint64(let value) = unwrapped { value } else { nil }
    }

    public var asDouble: Double? {
        if case .double(let value) = unwrapped { value } else { nil }
    }

    public var asUnixFD: UnixFD? {
        if case .unixFD(let value) = unwrapped { value } else { nil }
    }

    /// The value of any integer type that fits.
    public var asInteger: Int? {
        switch unwrapped {
        case .byte(let value): Int(value)
        case .int16(let value): Int(value)
        case .uint16(let value): Int(value)
        case .int32(let value): Int(value)
        case .uint32(let value): Int(value)
        case .int64(let value): Int(value)
        case .uint64(let value): Int(exactly: value)
        default: nil
        }
    }

    public var asBytes: [UInt8]? {
        if case .bytes(let value) = unwrapped { value } else { nil }
    }

    /// The elements of an array, bytes included.
    public var asArray: [DBusValue]? {
        switch unwrapped {
        case .array(of: _, let elements): elements
        case .bytes(let bytes): bytes.map { .byte($0) }
        default: nil
        }
    }

    public var asStructure: [DBusValue]? {
        if case .structure(let members) = unwrapped { members } else { nil }
    }

    /// The elements of an `as`; nil for any other type.
    public var asStrings: [String]? {
        guard case .array(of: .string, let elements) = unwrapped else { return nil }
        return elements.compactMap(\.asString)
    }

    /// The elements of an `ao`; nil for any other type.
    public var asObjectPaths: [ObjectPath]? {
        guard case .array(of: .objectPath, let elements) = unwrapped else { return nil }
        return elements.compactMap(\.asObjectPath)
    }

    public var asEntries: [DBusEntry]? {
        if case .dictionary(key: _, value: _, let entries) = unwrapped { entries } else { nil }
    }

    /// A dictionary with string keys; values that are variants come unwrapped. Of equal keys the last one counts.
    public var asDictionary: [String: DBusValue]? {
        guard case .dictionary(key: .string, value: _, let entries) = unwrapped else { return nil }
        var result = [String: DBusValue](minimumCapacity: entries.count)
        for entry in entries {
            if case .string(let key) = entry.key { result[key] = entry.value.unwrapped }
        }
        return result
    }

    /// An answer to `GetManagedObjects` (`a{oa{sa{sv}}}`): path, interface, property, value without its variant.
    public var asManagedObjects: [ObjectPath: [String: [String: DBusValue]]]? {
        guard case .dictionary(key: .objectPath, value: _, let entries) = unwrapped else { return nil }
        var result = [ObjectPath: [String: [String: DBusValue]]](minimumCapacity: entries.count)
        for entry in entries {
            guard case .objectPath(let path) = entry.key, let interfaces = entry.value.asInterfaces else { return nil }
            result[path] = interfaces
        }
        return result
    }

    /// Interfaces with their properties (`a{sa{sv}}`), as in `InterfacesAdded`.
    public var asInterfaces: [String: [String: DBusValue]]? {
        guard case .dictionary(key: .string, value: _, let entries) = unwrapped else { return nil }
        var result = [String: [String: DBusValue]](minimumCapacity: entries.count)
        for entry in entries {
            guard case .string(let name) = entry.key, let properties = entry.value.asDictionary else { return nil }
            result[name] = properties
        }
        return result
    }
}

// Builders for the types that everybody needs.
extension DBusValue {
    /// An `as`.
    public static func strings(_ values: some Sequence<String>) -> DBusValue {
        .array(of: .string, values.map { .string($0) })
    }

    /// An `ao`.
    public static func objectPaths(_ values: some Sequence<ObjectPath>) -> DBusValue {
        .array(of: .objectPath, values.map { .objectPath($0) })
    }

    /// An `a{sv}`, sorted by key so that equal dictionaries give equal messages. Values that are not variants yet are
    /// wrapped in one.
    public static func variantDictionary(_ values: [String: DBusValue]) -> DBusValue {
        .dictionary(
            key: .string,
            value: .variant,
            values.sorted { $0.key < $1.key }.map { DBusEntry(.string($0.key), $0.value.wrapped) }
        )
    }

    /// An `a{sv}` in the order given.
    public static func variantDictionary(pairs: [(String, DBusValue)]) -> DBusValue {
        .dictionary(key: .string, value: .variant, pairs.map { DBusEntry(.string($0.0), $0.1.wrapped) })
    }

    /// The value in a variant; a variant stays as it is.
    public var wrapped: DBusValue {
        if case .variant = self { self } else { .variant(self) }
    }
}
