// SPDX-License-Identifier: MIT

import Glibc

/// Standard input, output and error.
enum StandardDescriptors {
    /// Fills those that the process was started without. Else the next thing to be opened, such as the connection to the
    /// bus, gets the number of standard output, and the output is written into it.
    ///
    /// The filling can be used the wrong way round only, so that reading and writing fail as they would without it.
    /// Call it before anything is opened.
    static func fill() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
