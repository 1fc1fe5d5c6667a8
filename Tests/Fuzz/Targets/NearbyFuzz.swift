// SPDX-License-Identifier: MIT

import CFuzzer
import Glibc

/// One program for all fuzz targets: `NearbyFuzz --target=NAME [libFuzzer's options and folders]`.
///
/// libFuzzer passes over options that begin with two dashes, and hands them on to the processes that it starts.
@main
enum NearbyFuzz {
    typealias Callback = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

    static let targets: [(name: String, callback: Callback)] = [
        ("envelope", { run($0, $1, EnvelopeTarget.test) }),
        ("frames", { run($0, $1, FramesTarget.test) }),
        ("hello", { run($0, $1, HelloTarget.test) }),
        ("sealed", { run($0, $1, SealedTarget.test) }),
        ("dbus", { run($0, $1, DBusTarget.test) }),
        ("arguments", { run($0, $1, ArgumentsTarget.test) }),
        ("bridge", { run($0, $1, BridgeTarget.test) }),
    ]

    static func main() {
        let words = CommandLine.arguments
        if let place = words.firstIndex(of: "--seeds"), place + 2 < words.count {
            return Seeds.write(vectors: words[place + 1], to: words[place + 2])
        }
        guard let target = targets.first(where: { words.contains("--target=\($0.name)") }) else {
            let names = targets.map(\.name).joined(separator: ", ")
            print("usage: NearbyFuzz --target=NAME [options of libFuzzer] [folders]; NAME is one of \(names)")
            print("       NearbyFuzz --seeds VECTORS FOLDER")
            exit(2)
        }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(LLVMFuzzerRunDriver(&count, &arguments, target.callback))
    }

    private static func run(_ data: UnsafePointer<UInt8>?, _ size: Int, _ test: ([UInt8]) -> Void) -> CInt {
        test(Array(UnsafeBufferPointer(start: data, count: size)))
        return 0
    }
}
