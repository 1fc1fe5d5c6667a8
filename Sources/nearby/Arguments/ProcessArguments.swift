// SPDX-License-Identifier: MIT

import Glibc

/// The words that the process was started with.
enum ProcessArguments {
    /// Behind the program's name. `CommandLine.arguments` would mend what is not UTF-8, and a payload would arrive that
    /// nobody has typed: such a word is refused, as are more and longer words than the limits allow.
    static var words: Result<[String], Failure> {
        let count = Int(CommandLine.argc)
        guard count <= Limits.arguments + 1 else {
            return .failure(.usage("more than \(Limits.arguments) arguments"))
        }
        var words: [String] = []
        for index in stride(from: 1, to: count, by: 1) {
            guard let pointer = CommandLine.unsafeArgv[index] else { break }
            guard strlen(pointer) <= Limits.argumentBytes else {
                return .failure(.usage("argument \(index) is longer than \(Limits.argumentBytes) bytes"))
            }
            guard let word = String(validatingCString: pointer) else {
                return .failure(
                    .usage("argument \(index), \(PlainText.quoted(String(cString: pointer))), is not valid UTF-8")
                )
            }
            words.append(word)
        }
        hideSecrets()
        return .success(words)
    }

    /// Takes what follows `--passcode` or `--token` out of what other users see in a process listing.
    ///
    /// The kernel shows the process's own memory there (proc(5), `/proc/PID/cmdline`). It stood there for the moment
    /// until now: a file or the environment is better.
    private static func hideSecrets() {
        for option in ["--passcode", "--token"] { hide(option) }
    }

    private static func hide(_ option: String) {
        var isValue = false
        for index in stride(from: 1, to: Int(CommandLine.argc), by: 1) {
            guard let pointer = CommandLine.unsafeArgv[index] else { return }
            let length = strlen(pointer)
            if isValue {
                memset(pointer, Int32(UInt8(ascii: "*")), length)
                isValue = false
            } else if strcmp(pointer, option) == 0 {
                isValue = true
            } else if strncmp(pointer, option + "=", option.utf8.count + 1) == 0 {
                let start = option.utf8.count + 1
                memset(pointer + start, Int32(UInt8(ascii: "*")), length - start)
            }
        }
    }
}
