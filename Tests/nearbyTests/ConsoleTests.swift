// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct ConsoleTests {
    @Test func keepsResultsAndProgressApart() {
        let test = TestConsole(OutputOptions(verbose: true))
        test.console.status("live")
        test.console.result("result")
        test.console.note("note")
        test.console.detail("detail")
        #expect(test.printed == "result\n")
        #expect(test.told == "note\ndetail\n")
    }

    @Test func quietPrintsResultsAndErrorsOnly() {
        let test = TestConsole(OutputOptions(quiet: true), terminal: true)
        test.console.status("live")
        test.console.note("note")
        test.console.detail("detail")
        test.console.error("error")
        test.console.result("result")
        #expect(test.printed == "result\n")
        #expect(test.told == "error\n")
    }

    @Test func theLiveLineMakesRoomForLines() {
        let test = TestConsole(terminal: true)
        test.console.status("one")
        test.console.status("one")
        test.console.note("note")
        test.console.result("result")
        test.console.clearStatus()
        test.console.clearStatus()
        let clear = "\r\u{1B}[K"
        #expect(test.told == "\(clear)one\(clear)note\none\(clear)one\(clear)")
    }

    @Test func theLiveLineFitsTheTerminal() {
        let test = TestConsole(terminal: true, columns: 10)
        test.console.status("0123456789abc")
        #expect(test.told == "\r\u{1B}[K01234567…")
    }

    @Test func aBlockReplacesTheOneBefore() {
        let test = TestConsole(terminal: true, columns: 5, rows: 4)
        test.console.block(["a", "b", "c"])
        test.console.block(["a", "b", "d"])
        test.console.block(["0123456"])
        #expect(test.printed == "a\nb\n\u{1B}[2A\r\u{1B}[J0123…\n")
    }

    @Test func aClosedOutputIsToldOnceAndWrittenToNoMore() {
        let test = TestConsole()
        test.answer.withLock { $0 = .closed }
        test.console.result("a")
        test.console.result("b")
        #expect(test.broken.withLock { $0 } == [.outputClosed])
        #expect(test.printed == "a\n")
    }

    @Test func anInterruptionIsNoErrorToReport() {
        let test = TestConsole(OutputOptions(json: true))
        let failure = Failure(NearbyError(.cancelled, "the operation was cancelled"))
        #expect(Program.conclude(.failure(failure), .terminated, test.console) == .terminated)
        #expect(test.printed.isEmpty && test.told.isEmpty)
    }

    @Test func aFailureIsReportedOnBothStreamsWithJSON() {
        let test = TestConsole(OutputOptions(json: true))
        let failure = Failure(NearbyError(.poweredOff, "hci0 is \u{1B}off", advice: "Switch it on."))
        #expect(Program.conclude(.failure(failure), nil, test.console) == .poweredOff)
        #expect(
            test.printed == #"{"event":"error","code":"poweredOff","message":"hci0 is \u001boff","exitCode":73,"#
                + #""advice":"Switch it on."}"# + "\n"
        )
        #expect(test.told == "nearby: hci0 is \\u{1b}off\nSwitch it on.\n")
    }
}
