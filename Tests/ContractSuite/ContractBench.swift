// SPDX-License-Identifier: MIT

public import BluetoothLE

/// Two or three radios in one another's reach, and what a test may do to them. Every case gets a fresh one.
public struct ContractBench: Sendable {
    /// Which implementation this is, as in `ContractDifference.all`.
    public let name: String
    public let peripheral: any Radio
    public let central: any Radio
    /// For the cases of two centrals; they are left out without it.
    public let secondCentral: (any Radio)?
    public let controls: any ContractControls
    /// How long a case waits, on the radio's clock, for what has to happen.
    public let patience: Duration
    /// How long a case waits, on the radio's clock, for what must not happen.
    public let silence: Duration

    public init(
        name: String,
        peripheral: any Radio,
        central: any Radio,
        secondCentral: (any Radio)? = nil,
        controls: any ContractControls,
        patience: Duration = .seconds(15),
        silence: Duration = .seconds(3)
    ) {
        self.name = name
        self.peripheral = peripheral
        self.central = central
        self.secondCentral = secondCentral
        self.controls = controls
        self.patience = patience
        self.silence = silence
    }
}

/// A radio's part in a bench.
public enum ContractRole: String, Sendable, Hashable, CaseIterable {
    case peripheral
    case central
}

/// What a test can do to a bench besides using its radios.
public enum ContractAbility: String, Sendable, Hashable, CaseIterable {
    case power
    case serviceRestart
    case dropLink
    case rssi
    case range
    case mtu
    case secondCentral
}

/// Something done to a bench.
public enum ContractIntervention: Sendable, Hashable {
    case setPower(Bool, ContractRole)
    /// Returns when the service is back, or before.
    case restartService(ContractRole)
    /// The link between the central and the peripheral is lost, as by interference.
    case dropLink
    /// What the central hears of the peripheral.
    case setRSSI(Int?)
    /// Whether the peripheral is in reach of the central.
    case setInRange(Bool)
    /// For later links of the central.
    case setMTU(Int)

    var ability: ContractAbility {
        switch self {
        case .setPower: .power
        case .restartService: .serviceRestart
        case .dropLink: .dropLink
        case .setRSSI: .rssi
        case .setInRange: .range
        case .setMTU: .mtu
        }
    }
}

public protocol ContractControls: Sendable {
    /// What `perform` can do. Cases that need more are left out, and say so.
    var abilities: Set<ContractAbility> { get }

    func perform(_ intervention: ContractIntervention) async throws

    /// Runs a case and lets the radios' time pass meanwhile: with a real clock there is nothing to do for it.
    func run(_ body: @escaping @Sendable () async throws -> Void) async throws
}

extension ContractControls {
    public func run(_ body: @escaping @Sendable () async throws -> Void) async throws { try await body() }
}

/// A radio does not do what the contract says.
public struct ContractViolation: Error, Sendable, CustomStringConvertible {
    public let description: String

    public init(description: String) { self.description = description }
}

extension ContractBench {
    package func perform(_ intervention: ContractIntervention) async throws {
        guard controls.abilities.contains(intervention.ability) else {
            throw ContractViolation(description: "the case does not say that it needs \(intervention.ability)")
        }
        try await controls.perform(intervention)
    }

    /// The radio for cases that need two centrals.
    package var other: any Radio {
        get throws {
            guard let secondCentral else {
                throw ContractViolation(description: "the case does not say that it needs a second central")
            }
            return secondCentral
        }
    }
}
