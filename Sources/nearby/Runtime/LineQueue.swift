// SPDX-License-Identifier: MIT

/// Lines from a thread that may block to a task that may not, at most `Limits.typedLines` of them.
final class LineQueue: Sendable {
    private struct State {
        var lines: [String] = []
        var hasEnded = false
        var reader: CheckedContinuation<Void, Never>?
    }

    private let monitor = Monitor()
    private let state = Guarded(State())

    /// Waits while the queue is full. Not to be called from a task.
    func put(_ line: String) {
        monitor.withLock {
            while state.withLock({ $0.lines.count >= Limits.typedLines && !$0.hasEnded }) { monitor.wait(until: nil) }
        }
        let reader = state.withLock { state in
            if !state.hasEnded { state.lines.append(line) }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// No line comes any more; those that are there can still be read.
    func end() {
        let reader = state.withLock { state in
            state.hasEnded = true
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
        monitor.withLock {}
        monitor.signal()
    }

    /// The next line; `nil` at the end, and when the task is cancelled. One reader.
    func next() async -> String? {
        while !Task.isCancelled {
            let (line, hasEnded) = state.withLock { state in
                (state.lines.isEmpty ? nil : state.lines.removeFirst(), state.hasEnded)
            }
            if let line {
                monitor.withLock {}
                monitor.signal()
                return line
            }
            if hasEnded { return nil }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let waits = state.withLock { state in
                        guard state.lines.isEmpty, !state.hasEnded, !Task.isCancelled else { return false }
                        state.reader = continuation
                        return true
                    }
                    if !waits { continuation.resume() }
                }
            } onCancel: {
                let reader = state.withLock { state in
                    defer { state.reader = nil }
                    return state.reader
                }
                reader?.resume()
            }
        }
        return nil
    }
}
