// SPDX-License-Identifier: MIT

public import BluetoothLE

/// Something that goes wrong once, at a peripheral, on its next occasion.
///
/// Several faults of one kind come one after another, in the order in which they were injected. A faulty request
/// does not reach the peripheral's app.
public enum Fault: Sendable, Hashable {
    /// The next connect to this adapter fails with this error.
    case nextConnect(fails: BluetoothError)
    /// The next connect to this adapter gets no answer: it ends by its own time-out.
    case nextConnectHangs
    /// The next service discovery takes this much longer.
    case nextDiscoveryTakes(Duration)
    /// From the next service discovery on, and for this long, characteristics of this UUID are not to be seen.
    case nextDiscoveryLacks(BluetoothUUID, for: Duration)
    /// The next read is answered with this error.
    case nextRead(answers: ATTError)
    /// The next write with response is answered with this error.
    case nextWrite(answers: ATTError)
    /// The link drops in place of an answer to the next write. The write does not reach the app.
    case nextWriteDropsLink
    /// The next subscription is refused with this error.
    case nextSubscribe(answers: ATTError)
    /// The next notification goes missing for everybody.
    case nextNotificationIsLost
}
