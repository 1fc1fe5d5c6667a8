// SPDX-License-Identifier: MIT

public import BluetoothLE
#if os(Linux)
import BlueZ
#endif

/// The radio that an app gets when it names none: BlueZ on Linux.
public enum DefaultRadio {
    /// - Parameters:
    ///   - bus: A D-Bus address, or `session`; `nil` or `system`: `DBUS_SYSTEM_BUS_ADDRESS` if set, else the system bus.
    ///   - adapter: `hci0`, or an address; `nil`: the first adapter that is powered and does Bluetooth LE.
    /// - Throws: `invalidConfiguration` where this system has no radio of ours.
    public static func make(bus: String? = nil, adapter: String? = nil) throws(NearbyError) -> any Radio {
        #if os(Linux)
        return BlueZRadio(BlueZConfiguration(bus: bus, adapter: adapter))
        #else
        throw NearbyError(
            .adapterNotFound,
            "there is no default radio on this system",
            advice: "Pass a radio of your own that conforms to BluetoothLE's Radio."
        )
        #endif
    }
}
