// SPDX-License-Identifier: MIT

// The JSON of payloads is part of this room's vocabulary.
@_exported public import JSON
