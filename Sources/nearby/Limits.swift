// SPDX-License-Identifier: MIT

/// Every bound of the command line: what a caller, a file or a stranger's text may make us hold or print.
enum Limits {
    /// Arguments after the program's name.
    static let arguments = 1_000
    /// Bytes of one argument.
    static let argumentBytes = 65_536
    /// `--payload` pairs.
    static let payloadPairs = 256
    /// Bytes of a payload file, or of standard input.
    static let payloadFileBytes = 65_536
    /// Bytes of an attached file: what is left of a 64 KiB envelope in base64; the whole is checked again.
    static let attachmentBytes = 48 * 1_024
    /// Bytes of an attached file's name, as file systems have it.
    static let attachmentNameBytes = 255
    /// Passcodes that a person may type at one prompt.
    static let passcodePrompts = 3
    /// Bytes of an app's id. Nothing near it fits an envelope of 512 bytes, which is checked with the payload.
    static let appIdBytes = 255
    /// Bytes of a bridge's token.
    static let tokenBytes = 1...256
    /// Bytes of a bus address.
    static let busAddressBytes = 1_024
    /// The longest `--timeout`.
    static let timeout: Duration = .seconds(24 * 3_600)
    /// How long the clean-up after a signal may take. BlueZ needs about 2 s to take a link down.
    static let cleanUp: Duration = .seconds(10)
    /// The largest `--max-joins`.
    static let joins = 1_000_000
    /// Adapters of a simulation.
    static let simulatedAdapters = 8
    /// Characters of a stranger's text that are printed for people: a name, a message.
    static let printedText = 200
    /// Characters of one value of a payload, more than an envelope of 512 bytes can hold.
    static let printedPayload = 1_024
    /// Characters of an error message, which can hold a stranger's text.
    static let printedMessage = 600
    /// Characters of a wrong value that an error message repeats.
    static let quotedValue = 60
    /// Characters compared to find what a misspelt word may have meant.
    static let suggestionCharacters = 40
    /// Devices that `scan` keeps in view, and candidates that `join --select manual` lists.
    static let devices = 256
    /// Devices that `scan` counts.
    static let devicesCounted = 65_536
    /// Bytes of one line typed at a prompt, or of one line that a child process prints.
    static let lineBytes = 8_192
    /// Lines of a console that wait to be sent; a pipe is read no further then.
    static let typedLines = 64
    /// Bytes of the key of `--xor`.
    static let keyBytes = 256
    /// Bytes of a device's name on the command line: the longest that a scan response holds, and some.
    static let deviceNameBytes = 248
    /// The largest `--reconnect`.
    static let reconnections = 100
    /// How long a device may take to show its services and to turn notifications on.
    static let deviceReady: Duration = .seconds(30)
    /// Bytes of output that `demo` keeps of a child process to check it.
    static let keptOutputBytes = 65_536
}
