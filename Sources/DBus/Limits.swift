// SPDX-License-Identifier: MIT

/// Every bound of this room. Those marked "specification" are the D-Bus specification's own
/// (https://dbus.freedesktop.org/doc/dbus-specification.html); the others are ours.
package enum Limits {
    /// Specification: bytes in a signature.
    package static let signatureBytes = 255
    /// Specification: arrays within arrays, and structures within structures; together twice as many.
    package static let nesting = 32
    /// Containers in a value, variants counted too. libdbus refuses to read more.
    package static let totalNesting = 64
    /// Specification: bytes in a bus, interface, member or error name.
    package static let nameBytes = 255
    /// Bytes in an object path. The specification has no bound; nobody needs more.
    package static let pathBytes = 4096
    /// Specification: bytes in an array.
    package static let arrayBytes = 1 << 26
    /// Bytes in a message that we send, header and body. The specification allows 128 MiB, but a system bus takes this
    /// much and ends the connection that sends more (dbus-daemon, bus/config-parser.c: max_message_size).
    package static let messageBytes = 1 << 25
    /// Bytes in a message that arrives; a bigger one ends the connection. More than what is sent, since a bus adds the
    /// sender's name to what it has taken.
    package static let receivedMessageBytes = messageBytes + 1024
    /// Values (elements, members, entries) that one received message may turn into.
    package static let decodedValues = 1 << 20
    /// Unix file descriptors in one message that we send: what dbus-daemon takes, which ends the connection that sends
    /// more (bus/config-parser.c: max_message_unix_fds).
    package static let messageFDs = 16
    /// Unix file descriptors in one message that arrives; more end the connection. Other buses hand on more than we send.
    package static let receivedMessageFDs = 64
    /// Bytes of received messages that libdbus may hold before it stops reading.
    package static let receivedBytes = 1 << 26
    /// Descriptors of received messages that libdbus may hold before it stops reading.
    package static let receivedFDs = 256
    /// Bytes queued towards a bus that does not read. Calls and signals are refused above it.
    package static let outgoingBytes = 1 << 24
    /// Bytes queued at which even answers are impossible: the connection is given up. Calls and signals alone, of which the
    /// last may be as long as a message gets, do not reach it.
    package static let outgoingBytesFatal = outgoingBytes + 2 * messageBytes
    /// Calls of ours that wait for an answer, per connection.
    package static let pendingCalls = 4096
    /// Calls to our objects that wait for their answer, per connection.
    package static let unansweredCalls = 1024
    /// Match handlers per connection.
    package static let matches = 1024
    /// Exported objects per connection.
    package static let exportedObjects = 65_536
    /// Bytes in a match rule (the bus refuses more than 1024).
    package static let matchRuleBytes = 1024
    /// Bytes of introspection XML that are parsed.
    package static let introspectionBytes = 1 << 20
    /// Elements inside each other in introspection XML.
    package static let introspectionDepth = 32
    /// Bytes in the human text of an error.
    package static let errorTextBytes = 1024
    /// Bytes of a wrong value that an error repeats.
    package static let quotedBytes = 300
    /// Bus connections being opened at once (a hung bus holds a thread until it lets go).
    package static let concurrentOpens = 64
    /// Connections that wait for their turn to be opened.
    package static let waitingOpens = 256
    /// Time in which the bus must have answered Hello.
    package static let openTimeout: Duration = .seconds(10)
    /// Pause before the first and between the later attempts of a ``BusConnector``.
    package static let reconnectPause: ClosedRange<Duration> = .milliseconds(100) ... .seconds(5)
    /// Rounds of queued jobs an ``EventLoop`` runs before it looks at its descriptors again.
    package static let jobRounds = 16
    /// Messages handled in one turn before other work of the loop gets its chance.
    package static let messagesPerTurn = 128
}
