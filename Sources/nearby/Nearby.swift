// SPDX-License-Identifier: MIT

import Glibc

@main
struct Nearby {
    static func main() {
        StandardDescriptors.fill()
        exit(Program.run(ProcessArguments.words).rawValue)
    }
}
