# SPDX-License-Identifier: MIT
"""What discovery does on the real stack, as docs/bluez.md says it. No code of ours runs here."""
import asyncio

from dbus_fast import Variant

from lab import envelope
from lab.bluez import ADAPTER, BusError, dies_of_service_filters
from lab.cases import SUBJECTS, case
from lab.peers.peripheral import Peripheral

PATH = "/org/bluez/hci1"


async def discovery_refusals(lab):
    """What StartDiscovery is refused with until it is accepted; it is stopped again."""
    refusals = []
    while True:
        try:
            await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
            await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")
            return refusals
        except BusError as error:
            refusals.append(error.name.rsplit(".", 1)[1])
            assert len(refusals) < 40, refusals
        await asyncio.sleep(0.5)


async def _shown(lab, wanted):
    for _ in range(100):
        shown = {each.get("Name"): each.get("RSSI") for each in (await lab.bluez.devices()).values()}
        if wanted.items() <= shown.items():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"bluetoothd shows {shown}, not {wanted}")


@case("stack/rssi-of-each-peer", subjects=SUBJECTS)
async def _(lab):
    """What a peer's RSSI is set to is what bluetoothd shows, and follows a change during one scan"""
    near, far = Peripheral(lab, name="NEAR"), Peripheral(lab, name="FAR")
    near.rssi, far.rssi = -40, -80
    await near.start()
    await far.start()
    # RSSI -127: only that lifts the 8 dB step (bluez.md 17).
    filter_ = {"Transport": Variant("s", "le"), "RSSI": Variant("n", -127)}
    await lab.bluez.call(PATH, ADAPTER, "SetDiscoveryFilter", "a{sv}", [filter_])
    await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
    try:
        await _shown(lab, {"NEAR": -40, "FAR": -80})
        far.rssi = -77
        await _shown(lab, {"NEAR": -40, "FAR": -77})
    finally:
        await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")


@case("stack/filter-by-service", bugs=("bluez/bluez#2282",), subjects=SUBJECTS, core=True)
async def _(lab):
    """5.87 crashes at the first report for whoever names a service in the discovery filter"""
    await Peripheral(lab, name="NEAR").start()
    filter_ = {"Transport": Variant("s", "le"), "UUIDs": Variant("as", [envelope.SERVICE])}
    await lab.bluez.call(PATH, ADAPTER, "SetDiscoveryFilter", "a{sv}", [filter_])
    try:
        await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
        for _ in range(50):
            await asyncio.sleep(0.1)
            if any("RSSI" in each for each in (await lab.bluez.devices()).values()):
                await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")
                break
    except BusError:
        # It went while it was asked.
        for _ in range(50):
            if lab.bluetoothd.crashes:
                break
            await asyncio.sleep(0.1)
    crashed = bool(lab.bluetoothd.crashes)
    if crashed:
        # The kernel goes on discovering, and the next case would be refused.
        await lab.bluez.wait_powered(["hci1"], lab.seconds(30))
        await discovery_refusals(lab)
    assert crashed == dies_of_service_filters(lab.bluez_version), "a crash" if crashed else "no crash any more"


@case("stack/filter-outlives-discovery", subjects=SUBJECTS)
async def _(lab):
    """A client's filter stays after StopDiscovery, until it is set again: who starts again is filtered as before"""
    await Peripheral(lab, name="NEAR").start()
    # No UUIDs: 5.87 would die of them. No pattern: 5.82 admits a report that has no name yet.
    await lab.bluez.call(PATH, ADAPTER, "SetDiscoveryFilter", "a{sv}", [{"RSSI": Variant("n", -30)}])
    for _ in range(2):
        await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
        await asyncio.sleep(lab.seconds(2))
        heard = [each.get("Name") for each in (await lab.bluez.devices()).values()]
        await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")
        assert not heard, heard
    await lab.bluez.call(PATH, ADAPTER, "SetDiscoveryFilter", "a{sv}", [{}])
    await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
    try:
        await _shown(lab, {"NEAR": -50})
    finally:
        await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")


@case("stack/stop-behind-start", subjects=SUBJECTS)
async def _(lab):
    """A StopDiscovery that follows StartDiscovery before its answer is refused, and the discovery goes on"""
    await lab.bluez.bus()
    started, stopped = await asyncio.gather(
        *(lab.bluez.call(PATH, ADAPTER, member) for member in ("StartDiscovery", "StopDiscovery")),
        return_exceptions=True,
    )
    assert started == [], started
    assert isinstance(stopped, BusError) and stopped.name == "org.bluez.Error.InProgress", stopped
    assert await lab.bluez.get(PATH, ADAPTER, "Discovering")
    await lab.bluez.call(PATH, ADAPTER, "StopDiscovery")


@case("stack/discovery-outlives-bluetoothd", bugs=("hbldh/bleak#859", "bluez/bluer#47"), subjects=SUBJECTS)
async def _(lab):
    """bluetoothd is killed while it discovers: the kernel goes on for 10 s, and the new one's first StartDiscovery
    is refused with InProgress, though nobody has a session"""
    await lab.bluez.call(PATH, ADAPTER, "StartDiscovery")
    await lab.until(lambda: lab.adapter("hci1").controller.le_scan_enable, "hci1 scans")
    await lab.restart_bluetoothd(pause=0.5)
    began = asyncio.get_running_loop().time()
    refusals = await discovery_refusals(lab)
    took = asyncio.get_running_loop().time() - began
    lab.note(f"{len(refusals)} refusals {sorted(set(refusals))}, accepted after {took:.1f} s")
    assert set(refusals) == {"InProgress"}, refusals
