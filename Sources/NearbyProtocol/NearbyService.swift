// SPDX-License-Identifier: MIT

/// The UUIDs of the GATT service, in printed order and upper case.
public enum NearbyService {
    /// The primary service, advertised.
    public static let service = "A1B2C3D4-E5F6-7890-ABCD-EF1234567890"
    /// The message characteristic of the basic profile: `write`, `notify`.
    public static let message = "B2C3D4E5-F6A7-8901-BCDE-F12345678901"
    /// The hello characteristic of the extended profile: `read`.
    public static let hello = "C3D4E5F6-A7B8-9012-CDEF-123456789012"
    /// The channel characteristic of the extended profile: `write`, `notify`.
    public static let channel = "D4E5F6A7-B8C9-0123-DEF0-234567890123"
}
