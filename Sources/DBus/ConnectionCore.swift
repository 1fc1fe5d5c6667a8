// SPDX-License-Identifier: MIT

final class ConnectionCore: Sendable {
    func closeFromAnywhere() {}
}
