// SPDX-License-Identifier: MIT

import Testing

@testable import DeviceSession

/// The channel as data: inputs and the actions that they bring about.
@Suite struct ChannelTests {
    typealias Entry = CommandChannel.Entry
    typealias Action = CommandChannel.Action

    private let start = ContinuousClock.now

    private func channel(_ rules: ResponseRules = .at, prompt: Bool = false) -> CommandChannel {
        var channel = CommandChannel(
            rules, hasPrompt: prompt, quietWindow: .milliseconds(100), turnTimeout: .seconds(30))
        #expect(channel.open(at: start) == [])
        return channel
    }

    private func command(
        _ id: UInt64,
        _ line: String = "AT",
        _ mode: ResponseMode = .automatic,
        owner: UInt64? = nil
    ) -> Entry {
        Entry(id: id, work: .command(line, mode, timeout: .seconds(2)), bytes: Array(line.utf8), owner: owner)
    }

    private func payload(_ id: UInt64) -> Entry { Entry(id: id, work: .payload(timeout: .seconds(2)), bytes: [1]) }

    private func exclusive(_ id: UInt64, owner: UInt64? = nil) -> Entry {
        Entry(id: id, work: .exclusive, bytes: [], owner: owner)
    }

    private func response(_ text: String) -> Action { .line(DeviceLine(text, isResponse: true), isLogged: true) }

    private func stray(_ text: String) -> Action { .line(DeviceLine(text, isResponse: false), isLogged: true) }

    private func failure(in actions: [Action]) -> DeviceSessionError? {
        for case .finish(_, .failed(let error)) in actions { return error }
        return nil
    }

    @Test func theResponseLacksItsBorders() throws {
        var channel = channel()
        #expect(try channel.submit(command(1, "AT+V"), at: start) == [.write(command(1, "AT+V"))])
        #expect(channel.received(.line("AT+V"), at: start) == [response("AT+V")])
        #expect(channel.wrote(1, nil, at: start) == [])
        #expect(channel.received(.line("1.2"), at: start) == [response("1.2")])
        #expect(channel.received(.line("OK"), at: start) == [response("OK"), .finish(1, .lines(["1.2"]))])
        #expect(channel.deadline == nil)
    }

    @Test func anAnswerAheadOfTheAcknowledgementCounts() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        #expect(channel.received(.line("OK"), at: start) == [response("OK"), .finish(1, .lines([]))])
        #expect(try channel.submit(command(2), at: start) == [])
        #expect(channel.wrote(1, nil, at: start) == [.write(command(2))])
    }

    @Test func anErrorLineRefuses() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        _ = channel.wrote(1, nil, at: start)
        _ = channel.received(.line("half"), at: start)
        let error = try #require(failure(in: channel.received(.line("+CME ERROR: 3"), at: start)))
        #expect(error.code == .deviceRefused)
        #expect(error.lines == ["half", "+CME ERROR: 3"])
    }

    @Test func whatADeviceSaysByItselfIsNoResponse() throws {
        var channel = channel()
        #expect(channel.received(.line("hello"), at: start) == [stray("hello")])
        _ = try channel.submit(command(1), at: start)
        #expect(channel.received(.line("RING"), at: start) == [stray("RING")])
        _ = channel.wrote(1, nil, at: start)
        #expect(channel.received(.line("OK"), at: start).last == .finish(1, .lines([])))
    }

    @Test func withAnEchoThatIsCertainOldLinesAreNotTaken() throws {
        var rules = ResponseRules.at
        rules.echo = .always
        var channel = channel(rules)
        _ = try channel.submit(command(1, "AT+B"), at: start)
        _ = channel.wrote(1, nil, at: start)
        #expect(channel.received(.line("late answer to A"), at: start) == [stray("late answer to A")])
        #expect(channel.received(.line("OK"), at: start) == [stray("OK")])
        #expect(channel.received(.line("AT+B"), at: start) == [response("AT+B")])
        #expect(channel.received(.line("OK"), at: start).last == .finish(1, .lines([])))
    }

    @Test func commandsHaveTheirTurnInOrder() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        #expect(try channel.submit(command(2), at: start) == [])
        #expect(try channel.submit(payload(3), at: start) == [])
        _ = channel.wrote(1, nil, at: start)
        #expect(channel.received(.line("OK"), at: start).last == .write(command(2)))
        #expect(channel.cancel(2, at: start).first == .finish(2, .failed(.cancelled)))
        _ = channel.wrote(2, nil, at: start)
        // The answer to the one that was given up frees the channel.
        #expect(channel.received(.line("OK"), at: start) == [stray("OK"), .write(payload(3))])
        #expect(channel.wrote(3, nil, at: start) == [.finish(3, .sent)])
    }

    @Test func aTimeOutKeepsTheChannelUntilTheDeviceIsSilent() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        _ = channel.wrote(1, nil, at: start)
        _ = channel.received(.line("a"), at: start)
        #expect(channel.deadline == start + .seconds(2))
        let error = try #require(failure(in: channel.timerFired(at: start + .seconds(2))))
        #expect(error.code == .timedOut)
        #expect(error.lines == ["a"])
        _ = try channel.submit(command(2), at: start + .seconds(2))
        _ = channel.received(.line("b"), at: start + .milliseconds(2_200))
        #expect(channel.timerFired(at: start + .milliseconds(2_300)) == [])
        #expect(channel.timerFired(at: start + .milliseconds(2_500)) == [.write(command(2))])
    }

    @Test func aDeviceThatNeverStopsTalkingDoesNotKeepTheChannel() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        _ = channel.wrote(1, nil, at: start)
        _ = channel.cancel(1, at: start)
        _ = try channel.submit(command(2), at: start)
        for tenth in 1..<30 {
            let now = start + .milliseconds(100 * tenth)
            _ = channel.received(.line("noise"), at: now)
            #expect(channel.timerFired(at: now) == [])
        }
        #expect(channel.timerFired(at: start + Limits.drain) == [.write(command(2))])
    }

    @Test func collectingGivesWhatHasComeAndIsNoTimeOut() throws {
        var channel = channel()
        _ = try channel.submit(command(1, "AT+SCAN", .collectUntilTimeout), at: start)
        _ = channel.wrote(1, nil, at: start)
        for line in ["AT+SCAN", "OK", "one", "two", "OK"] {
            #expect(channel.received(.line(line), at: start) == [response(line)])
        }
        #expect(channel.timerFired(at: start + .seconds(2)) == [.finish(1, .lines(["one", "two"]))])
        #expect(try channel.submit(command(2), at: start) == [.write(command(2))])
    }

    @Test func withoutFinalLinesSilenceEndsAResponse() throws {
        var channel = channel(.untilSilence)
        _ = try channel.submit(command(1), at: start)
        _ = channel.wrote(1, nil, at: start)
        _ = channel.received(.line("a"), at: start + .seconds(1))
        #expect(channel.deadline == start + .milliseconds(1_300))
        #expect(channel.timerFired(at: start + .milliseconds(1_300)) == [.finish(1, .lines(["a"]))])
    }

    @Test func aPromptEndsAResponse() throws {
        var channel = channel(.elm327, prompt: true)
        _ = try channel.submit(command(1, "010C"), at: start)
        _ = channel.wrote(1, nil, at: start)
        _ = channel.received(.line("010C"), at: start)
        _ = channel.received(.line("41 0C 1A F8"), at: start)
        #expect(channel.deadline == start + .seconds(2))
        #expect(channel.received(.prompt, at: start) == [.finish(1, .lines(["41 0C 1A F8"]))])
    }

    @Test func anExclusiveSessionKeepsOthersOut() throws {
        var channel = channel()
        #expect(try channel.submit(exclusive(1), at: start) == [.finish(1, .granted)])
        #expect(try channel.submit(command(2), at: start) == [])
        #expect(try channel.submit(command(3, owner: 1), at: start) == [.write(command(3, owner: 1))])
        _ = channel.wrote(3, nil, at: start)
        #expect(channel.received(.line("OK"), at: start).last == .finish(3, .lines([])))
        #expect(channel.endExclusive(1, at: start) == [.write(command(2))])
    }

    @Test func misuseOfAnExclusiveSessionIsAnError() throws {
        var channel = channel()
        _ = try channel.submit(exclusive(1), at: start)
        for entry in [exclusive(2), exclusive(3, owner: 1), command(4, owner: 9)] {
            let error = #expect(throws: DeviceSessionError.self) { try channel.submit(entry, at: start) }
            #expect(error?.code == .exclusiveMisuse)
        }
        _ = channel.endExclusive(1, at: start)
        let error = #expect(throws: DeviceSessionError.self) { try channel.submit(command(5, owner: 1), at: start) }
        #expect(error?.code == .exclusiveMisuse)
    }

    @Test func aTurnThatNeverComesIsAnError() throws {
        var channel = channel()
        _ = try channel.submit(exclusive(1), at: start)
        _ = try channel.submit(command(2), at: start)
        #expect(channel.deadline == start + .seconds(30))
        #expect(failure(in: channel.timerFired(at: start + .seconds(30)))?.code == .busy)
        #expect(channel.endExclusive(1, at: start) == [])
    }

    @Test func aSecondMessageWithinTheQuietWindowIsBusy() throws {
        var channel = channel()
        #expect(try channel.submitNoWait(payload(1), at: start) == [.write(payload(1))])
        #expect(channel.wrote(1, nil, at: start) == [])
        for milliseconds in [0, 99] {
            let now = start + .milliseconds(milliseconds)
            let error = #expect(throws: DeviceSessionError.self) { try channel.submitNoWait(payload(2), at: now) }
            #expect(error?.code == .busy)
        }
        #expect(try channel.submitNoWait(payload(3), at: start + .milliseconds(100)) == [.write(payload(3))])
    }

    @Test func nothingIsSentWithoutWaitingWhileSomethingElseIs() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        #expect(throws: DeviceSessionError.self) { try channel.submitNoWait(payload(2), at: start) }
    }

    @Test func aLinkThatIsLostEndsAllCalls() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        _ = try channel.submit(command(2), at: start)
        _ = channel.received(.line("half"), at: start)
        var partial = DeviceSessionError.closed
        partial.lines = ["half"]
        #expect(channel.close(.closed) == [.finish(1, .failed(partial)), .finish(2, .failed(.closed))])
        let error = #expect(throws: DeviceSessionError.self) { try channel.submit(command(3), at: start) }
        #expect(error == .closed)
        #expect(channel.wrote(1, nil, at: start) == [])
    }

    @Test func aMessageThatCannotBeSentEndsItsCall() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        let failure = DeviceSessionError(.writeFailed, "no")
        #expect(channel.wrote(1, failure, at: start) == [.finish(1, .failed(failure))])
        #expect(try channel.submit(command(2), at: start) == [])
        #expect(channel.timerFired(at: start + .milliseconds(300)) == [.write(command(2))])
    }

    @Test func aResponseWithoutEndIsBounded() throws {
        var channel = channel()
        _ = try channel.submit(command(1), at: start)
        _ = channel.wrote(1, nil, at: start)
        var ended: DeviceSessionError?
        for _ in 0...Limits.responseLines {
            if let error = failure(in: channel.received(.line("x"), at: start)) { ended = error }
        }
        #expect(ended?.code == .limitExceeded)
        #expect(ended?.lines.count == Limits.responseLines)
    }

    @Test func theQueueIsBounded() throws {
        var channel = channel()
        for id in 0...UInt64(Limits.waitingCalls) { _ = try channel.submit(command(id), at: start) }
        let error = #expect(throws: DeviceSessionError.self) { try channel.submit(command(99), at: start) }
        #expect(error?.code == .limitExceeded)
    }
}
