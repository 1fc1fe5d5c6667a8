// SPDX-License-Identifier: MIT

/// A case that one implementation is known not to keep, and why that is right or cannot be helped.
public struct ContractDifference: Sendable, Hashable {
    /// The bench's name.
    public let radio: String
    /// The case's name.
    public let name: String
    public let reason: String
    /// Whether it is run all the same, and has to fail.
    public let isRun: Bool

    /// The one table of differences.
    public static let all: [ContractDifference] = [
        // SimulatedRadio keeps all of it.
    ]
}
