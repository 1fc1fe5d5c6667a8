// SPDX-License-Identifier: MIT

/// The owner of a name, as far as it is known. Touched on the loop only.
final class OwnerRecord {
    let name: String
    var users = 0
    var isKnown = false
    var owner: String?
    var token: MatchToken?
    var waiting: [@Sendable (Result<Void, DBusError>) -> Void] = []
    var handlers: [(id: UInt64, handler: @Sendable (String?) -> Void)] = []
    var nextHandler: UInt64 = 0

    init(name: String) {
        self.name = name
    }

    /// The subscription holds the record, so the record has to let go of it.
    func release() {
        token = nil
        handlers = []
    }
}

extension ConnectionCore {
    /// Follows the owner of a name until as many `untrack`s. The completion says when it is known.
    @discardableResult
    func track(
        _ name: String, _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) -> OwnerRecord {
        if let record = owners[name] {
            record.users += 1
            if record.isKnown { completion(.success(())) } else { record.waiting.append(completion) }
            return record
        }
        let record = OwnerRecord(name: name)
        record.users = 1
        record.waiting = [completion]
        owners[name] = record
        let rule = MatchRule(
            sender: StandardInterface.bus, path: StandardInterface.busPath, interface: StandardInterface.bus,
            member: "NameOwnerChanged", arg0: name)
        let box = LoopConfined(record)
        record.token = subscribe(
            rule,
            handler: { message in
                guard message.signature.string == "sss", case .string(let owner) = message.body[2] else { return }
                ConnectionCore.update(box.value, owner.isEmpty ? nil : owner)
            },
            completion: { [weak self] result in
                if case .failure(let error) = result { self?.fail(box.value, error) }
            })
        callBus("GetNameOwner", [.string(name)], returning: "s") { [weak self] result in
            switch result {
            case .success(let body): ConnectionCore.settle(box.value, body.first?.asString)
            case .failure(let error) where error.isServiceUnknown: ConnectionCore.settle(box.value, nil)
            case .failure(let error): self?.fail(box.value, error)
            }
        }
        return record
    }

    func untrack(_ record: OwnerRecord) {
        record.users -= 1
        guard record.users == 0 else { return }
        if owners[record.name] === record { owners[record.name] = nil }
        record.token?.cancel()
        record.release()
    }

    /// Follows a name for a handler, which is called with the present owner before the completion is.
    func watchOwner(
        _ name: String,
        handler: @escaping @Sendable (String?) -> Void,
        completion: @escaping @Sendable (Result<MatchToken, DBusError>) -> Void
    ) {
        guard Names.isBusName(name) else {
            completion(.failure(DBusError(.invalidArgument, "not a valid bus name: \(name)")))
            return
        }
        guard ended == nil else {
            completion(.failure(ended ?? .connectionLost))
            return
        }
        // The completion may come before `track` returns, so it finds the record by name.
        track(name) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let error):
                completion(.failure(error))
            case .success:
                guard let record = owners[name] else { return completion(.failure(ended ?? .connectionLost)) }
                completion(.success(attach(handler, to: record)))
            }
        }
    }

    private func attach(_ handler: @escaping @Sendable (String?) -> Void, to record: OwnerRecord) -> MatchToken {
        record.nextHandler += 1
        let id = record.nextHandler
        let box = LoopConfined(record)
        record.handlers.append((id, handler))
        handler(record.owner)
        return MatchToken { [weak self] in
            self?.onLoop { core in
                guard let index = box.value.handlers.firstIndex(where: { $0.id == id }) else { return }
                box.value.handlers.remove(at: index)
                core.untrack(box.value)
            }
        }
    }

    /// The answer to `GetNameOwner`: later than any `NameOwnerChanged` before it, so it counts.
    private static func settle(_ record: OwnerRecord, _ owner: String?) {
        update(record, owner)
        record.isKnown = true
        let waiting = record.waiting
        record.waiting = []
        for entry in waiting { entry(.success(())) }
    }

    /// Forgets a record whose owner cannot be known, so that the next one who asks starts afresh.
    private func fail(_ record: OwnerRecord, _ error: DBusError) {
        if owners[record.name] === record { owners[record.name] = nil }
        record.token?.cancel()
        record.token = nil
        let waiting = record.waiting
        record.waiting = []
        for entry in waiting { entry(.failure(error)) }
    }

    private static func update(_ record: OwnerRecord, _ owner: String?) {
        guard record.owner != owner else { return }
        record.owner = owner
        for entry in record.handlers
        where record.handlers.contains(where: { $0.id == entry.id }) {
            entry.handler(owner)
        }
    }
}
