// SPDX-License-Identifier: MIT

public import ContractSuite

extension ContractCase {
    /// What the two roles above the contract promise, over any radio. Written against NearbyDiscoveryKit's public API
    /// on one side and bare GATT peers on the other.
    public static let handoff: [ContractCase] =
        handingOver + judgingRequests + judgingAnswers + choosing + sharingTheHost + outliving + cancelling + extending
}
