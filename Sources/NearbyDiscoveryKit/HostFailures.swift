// SPDX-License-Identifier: MIT

import NearbyProtocol

extension NearbyError {
    /// What a host's app is told of a join that came to nothing; `nil` for what it knows otherwise.
    init?(_ failure: HostFailure) {
        switch failure {
        case .disconnected:
            self.init(.linkFailed, "the client left before it was answered")
        case .replaced:
            self.init(.linkFailed, "the client asked anew before it was answered; only the newer request counts")
        case .askedAgain:
            self.init(.linkFailed, "the client asked again after it was answered: it had not taken the answer")
        case .admissionTimedOut:
            self.init(
                .rejected,
                "the app did not decide within 10 seconds, and the client was told so",
                advice: "Decide faster, or reject and let the user try again."
            )
        case .handoffTooLarge(let size, let limit, let mtu):
            self.init(
                .payloadTooLarge,
                "the handoff is \(size) bytes, \(size - limit) over the \(limit) that fit this client's ATT MTU of \(mtu)",
                advice: "Shorten the payload, or hand over an address from which the rest can be fetched."
            )
        case .rejectDoesNotFit(let size, let limit, let mtu):
            self.init(
                .payloadTooLarge,
                """
                not even a reject (\(size) bytes) fits the \(limit) of this client's ATT MTU of \(mtu), so its write was \
                refused
                """,
                advice: "The client's Bluetooth stack has to exchange the MTU before it writes."
            )
        case .busy:
            self.init(.rejected, "too many clients asked at a time, and this one was told busy")
        case .remainderTimedOut:
            self.init(.linkFailed, "the rest of the client's long write did not come")
        case .offsetWithoutStart(let offset):
            self.init(.linkFailed, "the client wrote at offset \(offset) without having written what comes before")
        case .tooManyPeers:
            self.init(.linkFailed, "more clients are connected than the host keeps track of")
        case .radioReset, .stopped:
            return nil
        }
    }
}

extension NearbyError {
    /// The same for the extended profile.
    init?(_ failure: ExtendedHostFailure) {
        switch failure {
        case .disconnected:
            self.init(.linkFailed, "the client left before it had its answer, or before it said so")
        case .noReceipt:
            self.init(.linkFailed, "the client has not said that it has the handoff")
        case .tooSlow:
            self.init(.linkFailed, "the answer could not be handed over within 60 seconds")
        case .admissionTimedOut:
            self.init(HostFailure.admissionTimedOut)
        case .handoffTooLarge(let size, let limit):
            self.init(
                .payloadTooLarge,
                "the handoff is \(size) bytes, \(size - limit) over the \(limit) that this host announces",
                advice: "Shorten the payload, or hand over an address from which the rest can be fetched."
            )
        case .reservedKeys:
            self.init(
                .invalidConfiguration,
                "the app's payload has keys that begin with ndk., which are the protocol's"
            )
        case .busy:
            self.init(HostFailure.busy)
        case .radioReset, .stopped:
            return nil
        }
    }
}
