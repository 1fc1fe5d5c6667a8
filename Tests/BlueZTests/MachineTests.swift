// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

@Suite struct DiscoveryFilterTests {
    @Test func nothingToLookForIsNoFilter() {
        #expect(DiscoveryFilter(merging: []) == nil)
    }

    @Test func withoutAThresholdTheRSSIIsStillGivenSoThatSmallChangesAreSignalled() throws {
        let filter = try #require(DiscoveryFilter(merging: [ScanFilter(services: [0x180A])]))
        let value = try #require(filter.value(byService: true).asDictionary)
        #expect(value["Transport"] == .string("le"))
        #expect(value["RSSI"] == .int16(-127))
        #expect(value["UUIDs"] == .strings(["0000180a-0000-1000-8000-00805f9b34fb"]))
        #expect(value["Pathloss"] == nil)
    }

    /// bluez/bluez#2282: 5.87 jumps into the UUID's text. Debian's sid, Arch and Fedora have it.
    @Test(arguments: [
        ("usb:v1D6Bp0246d0542", true), ("usb:v1D6Bp0246d0556", true), ("usb:v1D6Bp0246d0557", false),
        ("usb:v1D6Bp0246d0558", true), ("usb:v1234p0246d0542", false), ("usb:v1D6Bp0246d054", false), ("", false),
    ])
    func servicesAreNamedOnlyToABluetoothdThatSurvivesIt(modalias: String, named: Bool) throws {
        var adapter = Adapter1(path: "/org/bluez/hci0")
        #expect(!adapter.filtersByService)
        adapter.apply(["Modalias": .string(modalias)])
        #expect(adapter.filtersByService == named)
        let filter = try #require(DiscoveryFilter(merging: [ScanFilter(services: [0x180A])]))
        let value = Adapter1.setDiscoveryFilter(adapter.path, filter, byService: named).body.first?.asDictionary
        #expect((value?["UUIDs"] != nil) == named)
        #expect(value?["RSSI"] == .int16(-127))
    }

    @Test func scansOfOneProcessMergeToTheWidest() throws {
        let two = [ScanFilter(services: [0x180A], minimumRSSI: -50), ScanFilter(services: [0x180F], minimumRSSI: -70)]
        let merged = try #require(DiscoveryFilter(merging: two))
        #expect(merged.rssi == -70)
        #expect(merged.services == [0x180A, 0x180F])
        let any = try #require(DiscoveryFilter(merging: two + [ScanFilter()]))
        #expect(any.rssi == -127)
        #expect(any.services.isEmpty)
        #expect(any.value(byService: true).asDictionary?["UUIDs"] == nil)
    }

    @Test(arguments: [(-200, -127), (50, 20)])
    func aThresholdThatBlueZRefusesIsBroughtIntoItsRange(given: Int, sent: Int) {
        #expect(DiscoveryFilter(merging: [ScanFilter(minimumRSSI: given)])?.rssi == sent)
    }
}

@Suite struct DiscoveryMachineTests {
    private static let filter = DiscoveryFilter(merging: [ScanFilter(services: [0x180A])])

    /// A scan wants this filter, and `SetDiscoveryFilter` is under way.
    private static func filtering() throws -> (DiscoveryMachine, DiscoveryFilter) {
        let filter = try #require(Self.filter)
        var machine = DiscoveryMachine()
        _ = machine.want(filter)
        _ = machine.adapterReady()
        return (machine, filter)
    }

    /// The same, and `StartDiscovery` is under way.
    private static func starting() throws -> (DiscoveryMachine, DiscoveryFilter) {
        var (machine, filter) = try filtering()
        _ = machine.answered(.setFilter(filter), .done)
        return (machine, filter)
    }

    @Test func setsTheFilterBeforeItStarts() throws {
        let filter = try #require(Self.filter)
        var machine = DiscoveryMachine()
        #expect(machine.want(filter) == nil)
        #expect(machine.adapterReady() == .setFilter(filter))
        #expect(machine.answered(.setFilter(filter), .done) == .start)
        #expect(!machine.isSettled)
        #expect(machine.answered(.start, .done) == nil)
        #expect(machine.isSettled)
        #expect(machine.want(nil) == .stop)
        #expect(machine.answered(.stop, .failed) == nil)
        #expect(machine.isSettled)
    }

    /// Seen on 5.66 and 5.82: after a crash of bluetoothd the kernel goes on discovering, and the new one answers
    /// `InProgress` for about 10 s though nobody has a session.
    @Test func inProgressIsAskedAgainUntilItRuns() throws {
        var (machine, _) = try Self.starting()
        #expect(machine.answered(.start, .heldUp) == nil)
        #expect(!machine.isRunning)
        #expect(machine.adapterReady() == .start)
        #expect(machine.answered(.start, .done) == nil)
        #expect(machine.isRunning && machine.isSettled)
    }

    /// It may also be a session of ours whose start was answered too late: it is stopped, to be sure.
    @Test func aSessionInProgressIsStoppedToo() throws {
        var (machine, _) = try Self.starting()
        _ = machine.answered(.start, .heldUp)
        #expect(machine.want(nil) == .stop)
        #expect(machine.answered(.stop, .failed) == nil)
        #expect(machine.isSettled)
    }

    /// Without an answer in time it may run all the same, for a program that looks for nothing any more.
    @Test(arguments: [DiscoveryMachine.Outcome.unanswered, .heldUp])
    func whatMayRunIsStoppedWhereNobodyWantsItAnyMore(outcome: DiscoveryMachine.Outcome) throws {
        var (machine, _) = try Self.starting()
        #expect(machine.want(nil) == nil)
        #expect(machine.answered(.start, outcome) == .stop)
        #expect(!machine.isSettled)
        #expect(machine.answered(.stop, .done) == nil)
        #expect(machine.isSettled)
    }

    @Test func whatWasRefusedIsNotStopped() throws {
        var (machine, _) = try Self.starting()
        #expect(machine.want(nil) == nil)
        #expect(machine.answered(.start, .failed) == nil)
        #expect(machine.isSettled)
    }

    @Test func whatFailedWaitsForThePauseToPass() throws {
        var (machine, filter) = try Self.filtering()
        #expect(machine.answered(.setFilter(filter), .failed) == nil)
        #expect(machine.adapterReady() == .setFilter(filter))
    }

    @Test func oneCallAtATime() throws {
        let filter = try #require(Self.filter)
        var machine = DiscoveryMachine()
        _ = machine.want(filter)
        #expect(machine.adapterReady() == .setFilter(filter))
        #expect(machine.want(nil) == nil)
        #expect(machine.answered(.setFilter(filter), .done) == nil)
        #expect(machine.isSettled)
    }

    @Test func afterTheAdapterWasAwayEverythingIsSaidAgain() throws {
        var (machine, filter) = try Self.starting()
        _ = machine.answered(.start, .done)
        machine.adapterLost()
        #expect(!machine.isRunning)
        #expect(machine.answered(.start, .done) == nil)
        #expect(machine.adapterReady() == .setFilter(filter))
    }

    @Test func aNewScanAfterTheEndSetsItsFilterAgainBecauseStoppingForgotIt() throws {
        var (machine, filter) = try Self.starting()
        _ = machine.answered(.start, .done)
        _ = machine.want(nil)
        _ = machine.answered(.stop, .done)
        #expect(machine.want(filter) == .setFilter(filter))
    }
}

@Suite struct AdvertisingMachineTests {
    private static let full = AdvertisingForm(interval: true, name: true)

    @Test func climbsDownOnceTheSameHasFailedTwice() {
        var machine = AdvertisingMachine(interval: true, name: true)
        #expect(machine.begin() == .register(Self.full))
        #expect(machine.failed(.form) == .register(Self.full))
        #expect(machine.failed(.form) == .register(AdvertisingForm(interval: false, name: true)))
        #expect(machine.failed(.form) == .register(AdvertisingForm(interval: false, name: false)))
        #expect(machine.isDegraded)
        #expect(machine.failed(.form) == .giveUp)
    }

    @Test func withoutIntervalAndNameThereIsOneRetry() {
        var machine = AdvertisingMachine(interval: false, name: false)
        let form = AdvertisingForm(interval: false, name: false)
        #expect(machine.begin() == .register(form))
        #expect(machine.failed(.form) == .register(form))
        #expect(machine.failed(.form) == .giveUp)
    }

    @Test func noRoomIsTriedTwiceWhateverTheForm() {
        var machine = AdvertisingMachine(interval: true, name: true)
        _ = machine.begin()
        #expect(machine.failed(.noRoom) == .register(Self.full))
        #expect(machine.failed(.noRoom) == .giveUp)
    }

    @Test func whatExistsIsTakenBackFirst() {
        var machine = AdvertisingMachine(interval: true, name: true)
        _ = machine.begin()
        #expect(machine.failed(.exists) == .unregisterThenRegister(Self.full))
        #expect(machine.failed(.exists) == .giveUp)
    }

    @Test func theFormThatWorkedIsTheFirstNextTime() {
        var machine = AdvertisingMachine(interval: true, name: true)
        _ = machine.begin()
        _ = machine.failed(.form)
        _ = machine.failed(.form)
        machine.succeeded()
        #expect(machine.begin() == .unregisterThenRegister(AdvertisingForm(interval: false, name: true)))
        machine.reset()
        #expect(machine.begin() == .register(Self.full))
    }

    @Test func whatIsRegisteredIsRefreshedWhereBluetoothdSurvivesARefusal() {
        var machine = AdvertisingMachine(interval: true, name: true)
        #expect(machine.again(besideLinks: false, survivesRefusal: true) == .register(Self.full))
        machine.succeeded()
        #expect(machine.again(besideLinks: true, survivesRefusal: true) == .refresh)
        #expect(machine.isRegistered)
        machine.released()
        #expect(machine.again(besideLinks: true, survivesRefusal: true) == .register(Self.full))
    }

    @Test func elsewhereAControllerHasToShowFirstThatItAdvertisesBesideALink() {
        var machine = AdvertisingMachine(interval: true, name: true)
        _ = machine.begin()
        machine.succeeded(besideLinks: false)
        #expect(machine.again(besideLinks: false, survivesRefusal: false) == .refresh)
        #expect(machine.again(besideLinks: true, survivesRefusal: false) == .unregisterThenRegister(Self.full))
        machine.succeeded(besideLinks: true)
        #expect(machine.again(besideLinks: true, survivesRefusal: false) == .refresh)
        machine.reset()
        _ = machine.begin()
        machine.succeeded()
        #expect(machine.again(besideLinks: true, survivesRefusal: false) == .unregisterThenRegister(Self.full))
    }

    @Test func afterReleaseThereIsNothingToTakeBack() {
        var machine = AdvertisingMachine(interval: true, name: true)
        _ = machine.begin()
        machine.succeeded()
        machine.released()
        #expect(machine.begin() == .register(Self.full))
    }

    @Test(arguments: [
        ("org.bluez.Error.NotPermitted", AdvertisingMachine.Refusal.noRoom),
        ("org.bluez.Error.AlreadyExists", .exists), ("org.bluez.Error.Failed", .form),
        ("org.bluez.Error.InvalidArguments", .form), ("org.freedesktop.DBus.Error.NoReply", .hopeless),
        ("org.freedesktop.DBus.Error.AccessDenied", .hopeless),
    ])
    func refusalsSayWhatToTryNext(name: String, refusal: AdvertisingMachine.Refusal) {
        #expect(AdvertisingMachine.refusal(DBusError(name: name, message: "")) == refusal)
    }
}

@Suite struct SightingFilterTests {
    private static let path: ObjectPath = "/org/bluez/hci0/dev_1"

    private static func device(_ uuids: Set<BluetoothUUID>, rssi: Int? = nil) -> Device1 {
        var device = Device1()
        device.advertisement.serviceUUIDs = uuids
        device.rssi = rssi
        return device
    }

    @Test func aDeviceThatWasNotHeardIsNotSeen() {
        var filter = SightingFilter(ScanFilter())
        #expect(filter.judge(Self.path, Self.device([], rssi: -40), .advertisement) == nil)
        #expect(filter.judge(Self.path, Self.device([], rssi: -40), .connected) == nil)
    }

    @Test func otherClientsDevicesAreLeftOutByServiceAndByRSSI() {
        var filter = SightingFilter(ScanFilter(services: [0x180A], minimumRSSI: -60))
        #expect(filter.judge(Self.path, Self.device([0x180F], rssi: -40), [.heard, .rssi]) == nil)
        #expect(filter.judge(Self.path, Self.device([0x180A], rssi: -61), [.heard, .rssi]) == nil)
        #expect(filter.judge(Self.path, Self.device([0x180A], rssi: -60), [.heard, .rssi])?.rssi == -60)
    }

    @Test func propertiesThatArrivePiecemealAreOneSighting() {
        var filter = SightingFilter(ScanFilter(services: [0x180A], minimumRSSI: -60))
        #expect(filter.judge(Self.path, Self.device([], rssi: -50), [.heard, .rssi]) == nil)
        #expect(filter.judge(Self.path, Self.device([0x180A], rssi: -50), .advertisement)?.rssi == -50)
    }

    @Test func aReadingIsReportedOnce() {
        var filter = SightingFilter(ScanFilter())
        #expect(filter.judge(Self.path, Self.device([], rssi: -50), [.heard, .rssi])?.rssi == -50)
        #expect(filter.judge(Self.path, Self.device([], rssi: -50), .advertisement) == .init(rssi: nil))
    }

    @Test func withAThresholdAReportWithoutAReadingIsLeftOut() {
        var filter = SightingFilter(ScanFilter(minimumRSSI: -90))
        #expect(filter.judge(Self.path, Self.device([]), [.heard, .advertisement]) == nil)
    }

    @Test func onlyWhatWasReportedIsTakenBack() {
        var filter = SightingFilter(ScanFilter())
        let before = filter.forget(Self.path)
        _ = filter.judge(Self.path, Self.device([], rssi: -50), [.heard, .rssi])
        let after = filter.forget(Self.path)
        let again = filter.forget(Self.path)
        #expect([before, after, again] == [false, true, false])
    }

    @Test func devicesAreBounded() throws {
        var filter = SightingFilter(ScanFilter())
        for number in 0..<Limits.devices {
            let path = try #require(ObjectPath(validating: "/d\(number)"))
            #expect(filter.judge(path, Self.device([], rssi: -50), [.heard, .rssi]) != nil)
        }
        #expect(filter.judge("/more", Self.device([], rssi: -50), [.heard, .rssi]) == nil)
    }
}
