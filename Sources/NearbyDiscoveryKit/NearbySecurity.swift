// SPDX-License-Identifier: MIT

public import NearbyProtocol

/// What protects a handoff beyond the seal that two peers of ours always have.
///
/// ```swift
/// NearbyHost.Configuration(appId: "com.example.myapp", security: .passcode(.random()))
/// NearbyClient.Configuration(appId: "com.example.myapp", security: .passcode("48291357"))
/// ```
public struct NearbySecurity: Sendable, Equatable {
    private enum Kind: Sendable, Equatable {
        case open
        case passcode(Passcode)
        case unusable(PasscodeError)
    }

    private let kind: Kind

    /// No passcode. Between two peers of ours the exchange is **sealed, unauthenticated**: hidden from listeners and
    /// from the host's other clients, but not from somebody who sits between both from the start. With a basic peer
    /// (today's iOS and Android ones) it is plain text.
    public static let open = NearbySecurity(kind: .open)

    /// Both sides must know the passcode, and each proves it to the other; the exchange is sealed and authenticated. It
    /// means the extended profile and nothing else: neither side speaks basic.
    ///
    /// - Parameter text: 4 to 64 printable ASCII characters. Anything else, an empty text first of all, makes the
    ///   initialiser of the host or client throw `invalidConfiguration`.
    public static func passcode(_ text: String) -> NearbySecurity {
        do throws(PasscodeError) {
            return NearbySecurity(kind: .passcode(try Passcode(text)))
        } catch {
            return NearbySecurity(kind: .unusable(error))
        }
    }

    public static func passcode(_ passcode: Passcode) -> NearbySecurity {
        NearbySecurity(kind: .passcode(passcode))
    }

    /// Whether there is a passcode, usable or not.
    public var hasPasscode: Bool { kind != .open }

    /// - Throws: `invalidConfiguration`, without the text, where it is no passcode.
    func passcode() throws(NearbyError) -> Passcode? {
        switch kind {
        case .open: return nil
        case .passcode(let passcode): return passcode
        case .unusable(let error):
            throw NearbyError(
                .invalidConfiguration, "the passcode cannot be used: \(error.code)", advice: error.message)
        }
    }
}

extension NearbySecurity: CustomStringConvertible, CustomReflectable {
    /// Never the passcode.
    public var description: String { hasPasscode ? "passcode" : "open" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension NearbyError {
    init(_ error: ProfileError) {
        self.init(.invalidConfiguration, "the profile and the security exclude each other", advice: error.message)
    }
}

extension NearbyHost.Configuration {
    func profiles() throws(NearbyError) -> HostProfiles {
        let passcode = try security.passcode()
        do throws(ProfileError) {
            return try HostProfiles(profile, passcode: passcode, basic: basicProfile)
        } catch {
            throw NearbyError(error)
        }
    }
}

extension NearbyClient.Configuration {
    func profiles() throws(NearbyError) -> ClientProfiles {
        let passcode = try security.passcode()
        do throws(ProfileError) {
            return try ClientProfiles(profile, passcode: passcode)
        } catch {
            throw NearbyError(error)
        }
    }
}
