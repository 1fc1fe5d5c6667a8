// SPDX-License-Identifier: MIT

public import NearbyProtocol

public typealias HandoffTiming = ExchangeTiming
public typealias Encounters = EncounterCounts
public typealias HostSelection = Selection
