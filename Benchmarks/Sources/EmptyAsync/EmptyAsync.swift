// SPDX-License-Identifier: MIT

/// An async program with nothing to do: what the language's own runtime costs a process that waits.
///
/// `bare` suspends `main` for ever; `executor` has first used the global executor and waits in its timer, so that
/// whatever that does in the background is seen too.
@main
struct EmptyAsync {
    static func main() async {
        if CommandLine.arguments.dropFirst().first == "executor" {
            await Task.detached { await Task.yield() }.value
            try? await Task.sleep(for: .seconds(1_000_000))
        }
        await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
}
