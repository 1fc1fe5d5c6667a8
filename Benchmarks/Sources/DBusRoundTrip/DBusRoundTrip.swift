// SPDX-License-Identifier: MIT

import DBus
import Glibc

/// The same calls as `C/blocking_caller.c` makes, through `DBusConnection.call`, one after another.
@main
struct DBusRoundTrip {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let warmUp = Int(arguments[3]), let calls = Int(arguments[4]), calls > 0 else {
            fail("usage: DBusRoundTrip actor|async|preferred ADDRESS WARM_UP CALLS", status: 2)
        }
        do {
            let connection = try await DBusConnection.open(.address(arguments[2]))
            let echo = try Echo()
            switch arguments[1] {
            case "actor":
                print(try await Caller(connection: connection, echo: echo).measure(warmUp: warmUp, calls: calls))
            case "async":
                print(try await measure(connection, echo, warmUp: warmUp, calls: calls))
            case "preferred":
                let report = try await withTaskExecutorPreference(connection.loop) {
                    try await measure(connection, echo, warmUp: warmUp, calls: calls)
                }
                print(report)
            default:
                fail("\(arguments[1]): not actor, async or preferred", status: 2)
            }
            await connection.close()
        } catch {
            fail("\(error)", status: 1)
        }
    }

    private static func fail(_ text: String, status: Int32) -> Never {
        let line = Array("\(text)\n".utf8)
        write(2, line, line.count)
        exit(status)
    }

    /// A plain async function: it runs on the global executor, and each call goes to the loop's thread and back; unless
    /// its task prefers the loop.
    @concurrent
    private static func measure(
        _ connection: DBusConnection, _ echo: Echo, warmUp: Int, calls: Int
    ) async throws -> String {
        for _ in 0..<warmUp { try await echo.call(connection) }
        var times = Times(calls: calls)
        for _ in 0..<calls {
            try await echo.call(connection)
            times.lap()
        }
        return times.report
    }
}

/// An actor that lives on the connection's loop, as the BlueZ room's actors do.
actor Caller {
    private let connection: DBusConnection
    private let echo: Echo

    nonisolated var unownedExecutor: UnownedSerialExecutor { connection.loop.asUnownedSerialExecutor() }

    init(connection: DBusConnection, echo: Echo) {
        self.connection = connection
        self.echo = echo
    }

    func measure(warmUp: Int, calls: Int) async throws -> String {
        for _ in 0..<warmUp { try await echo.call(connection) }
        var times = Times(calls: calls)
        for _ in 0..<calls {
            try await echo.call(connection)
            times.lap()
        }
        return times.report
    }
}
