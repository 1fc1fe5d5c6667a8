// SPDX-License-Identifier: MIT

import Glibc

@main
struct Nearby {
    static func main() {
        exit(Program.run(ProcessArguments.words).rawValue)
    }
}
