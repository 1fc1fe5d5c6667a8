// SPDX-License-Identifier: MIT

/// One thing that the contract promises, as a test over any radio.
public struct ContractCase: Sendable, CustomStringConvertible {
    public enum Outcome: Sendable, Equatable {
        case held
        /// Not run, and why.
        case leftOut(String)
        /// Did not hold, in the way that the table of differences expects.
        case differed(String)
    }

    public let name: String
    public let needs: Set<ContractAbility>
    let body: @Sendable (ContractBench) async throws -> Void

    package init(
        _ name: String,
        needs: Set<ContractAbility> = [],
        _ body: @escaping @Sendable (ContractBench) async throws -> Void
    ) {
        self.name = name
        self.needs = needs
        self.body = body
    }

    public var description: String { name }

    public static let all: [ContractCase] =
        scanning + connecting + discovering + reading + writing + notifying + sharing + recovering + ending

    /// Runs the case.
    ///
    /// - Throws: `ContractViolation`, or what the radio threw out of turn; also where a difference is expected that is
    ///   not there any more.
    public func run(on bench: ContractBench) async throws -> Outcome {
        var abilities = bench.controls.abilities
        if bench.secondCentral == nil { abilities.remove(.secondCentral) } else { abilities.insert(.secondCentral) }
        let missing = needs.subtracting(abilities)
        guard missing.isEmpty else {
            return .leftOut("needs " + missing.map(\.rawValue).sorted().joined(separator: ", "))
        }
        let body = body
        guard let difference = ContractDifference.all.first(where: { $0.isOf(bench.name) && $0.name == name }) else {
            try await bench.controls.run { try await body(bench) }
            return .held
        }
        do {
            try await bench.controls.run { try await body(bench) }
        } catch {
            let seen = String(describing: error)
            guard seen.hasPrefix(difference.violation) else {
                throw ContractViolation(
                    description: "“\(seen)” in place of “\(difference.violation)…”, which \(bench.name) is known for")
            }
            return .differed("\(seen). \(difference.reason)")
        }
        throw ContractViolation(description: "holds by now: strike “\(name)” off the differences of \(bench.name)")
    }
}
