// SPDX-License-Identifier: MIT

internal import Glibc

/// Whether the kernel's radio switch (rfkill) holds Bluetooth down.
///
/// Source: Linux, Documentation/ABI/stable/sysfs-class-rfkill.
enum RadioBlock: Sendable, Hashable {
    /// By software: `rfkill unblock bluetooth` lifts it.
    case soft
    /// By a switch or key of the machine.
    case hard

    /// The strongest block of any Bluetooth switch; `nil` if there is none.
    ///
    /// - Parameter adapter: Only this adapter's switch and those that belong to no adapter (platform keys).
    static func read(adapter: String? = nil, root: String = "/sys/class/rfkill") -> RadioBlock? {
        guard let directory = opendir(root) else { return nil }
        defer { closedir(directory) }
        var found: RadioBlock?
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix("rfkill"), line("\(root)/\(name)/type") == "bluetooth" else { continue }
            if let adapter, let owner = line("\(root)/\(name)/name"), owner.hasPrefix("hci"), owner != adapter {
                continue
            }
            if line("\(root)/\(name)/hard") == "1" { return .hard }
            if line("\(root)/\(name)/soft") == "1" { found = .soft }
        }
        return found
    }

    private static func line(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 64)
        guard fgets(&buffer, Int32(buffer.count), file) != nil else { return nil }
        let bytes = buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
