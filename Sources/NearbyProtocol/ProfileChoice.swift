// SPDX-License-Identifier: MIT

/// Which profiles a side speaks.
public enum ProfileChoice: String, Hashable, Sendable, CaseIterable {
    /// Extended with a peer that has it, else basic. With a passcode: extended only.
    case auto
    case basic
    case extended
}

/// Whether a host serves basic peers too.
public enum BasicProfile: Hashable, Sendable {
    /// Unless there is a passcode.
    case automatic
    case allowed
    case refused
}

/// Which profiles a host serves.
package struct HostProfiles: Equatable, Sendable {
    package let servesBasic: Bool
    package let servesExtended: Bool
    package let passcode: Passcode?

    /// The rule: a passcode means extended only, and whatever contradicts that is an error.
    package init(
        _ choice: ProfileChoice = .auto, passcode: Passcode? = nil, basic: BasicProfile = .automatic
    ) throws(ProfileError) {
        if passcode != nil {
            if choice == .basic { throw ProfileError(code: .passcodeWithoutExtended) }
            if basic == .allowed { throw ProfileError(code: .basicBesidePasscode) }
        }
        switch (choice, basic) {
        case (.basic, .refused): throw ProfileError(code: .noProfile)
        case (.extended, .allowed): throw ProfileError(code: .basicBesideExtended)
        default: break
        }
        self.passcode = passcode
        servesExtended = choice != .basic
        servesBasic = passcode == nil && choice != .extended && basic != .refused
    }

    var helloFlags: Hello.Flags {
        var flags: Hello.Flags = []
        if passcode != nil { flags.insert(.passcodeNeeded) }
        if !servesBasic { flags.insert(.basicRefused) }
        return flags
    }
}

/// Which profiles a client speaks.
package struct ClientProfiles: Equatable, Sendable {
    /// Whatever the host has, without a passcode.
    package static let automatic = ClientProfiles()

    package let choice: ProfileChoice
    package let passcode: Passcode?

    private init() {
        choice = .auto
        passcode = nil
    }

    package init(_ choice: ProfileChoice = .auto, passcode: Passcode? = nil) throws(ProfileError) {
        if passcode != nil, choice == .basic { throw ProfileError(code: .passcodeWithoutExtended) }
        self.choice = passcode == nil ? choice : .extended
        self.passcode = passcode
    }

    /// What to do with one instance of the service.
    package enum Verdict: Equatable, Sendable {
        case basic
        case readHello
        case stop(SecurityRequired)
    }

    /// - Parameters:
    ///   - hasHello: hello and channel are there.
    ///   - hasMessage: the message characteristic is there.
    package func judge(hasHello: Bool, hasMessage: Bool) -> Verdict? {
        switch choice {
        case .auto: hasHello ? .readHello : hasMessage ? .basic : nil
        case .basic: hasMessage ? .basic : hasHello ? .stop(.hostHasNoBasic) : nil
        case .extended: hasHello ? .readHello : hasMessage ? .stop(.hostHasNoExtended) : nil
        }
    }

    /// - Returns: nil where the exchange can go on. Whatever is wrong, nothing has been written yet.
    package func judge(_ hello: Hello) -> SecurityRequired? {
        switch (passcode, hello.flags.contains(.passcodeNeeded)) {
        case (nil, true): .passcodeNeeded
        case (.some, false): .hostAsksForNoPasscode
        default: nil
        }
    }
}

/// Why a client stopped before it wrote anything.
package enum SecurityRequired: Equatable, Sendable {
    /// The host wants a passcode and none was given. Ask for it, then join again: hello is read afresh.
    case passcodeNeeded
    /// A passcode was given, and the host asks for none: it is not the host that is meant, or its hello was altered.
    case hostAsksForNoPasscode
    /// The extended profile is wanted, and the host has only basic.
    case hostHasNoExtended
    /// The basic profile is wanted, and the host has only extended.
    case hostHasNoBasic
}

/// A choice of profiles that contradicts itself.
public struct ProfileError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of error; more may follow.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        private init(_ name: String) {
            self.name = name
        }

        /// A passcode, and the basic profile alone, which has none.
        public static let passcodeWithoutExtended = Code("passcode_without_extended")
        /// A passcode, and basic peers allowed, who would need none.
        public static let basicBesidePasscode = Code("basic_beside_passcode")
        /// The extended profile alone, and basic peers allowed.
        public static let basicBesideExtended = Code("basic_beside_extended")
        /// The basic profile alone, and refused.
        public static let noProfile = Code("no_profile")

        public var description: String { name }
    }

    public var code: Code

    init(code: Code) {
        self.code = code
    }

    /// What is wrong and what to do, in English.
    public var message: String {
        switch code {
        case .passcodeWithoutExtended: "A passcode needs the extended profile; choose auto or extended."
        case .basicBesidePasscode: "A passcode keeps basic peers out; leave the basic profile to the framework."
        case .basicBesideExtended: "Only the extended profile was chosen; choose auto to serve basic peers too."
        default: "No profile is left to serve."
        }
    }

    public var description: String { "\(code): \(message)" }
}
