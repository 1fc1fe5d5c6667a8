# SPDX-License-Identifier: MIT
"""What the real stack does, as docs/bluez.md says it: the ground that our code and our simulator stand on.

No code of ours runs here, only bluetoothd, the kernel and the peers. A case that fails on a new BlueZ is news.
"""
import asyncio
import ctypes
import os
import socket
import struct

from bumble import att

from lab import envelope
from lab.bluez import DEVICE, BusError, counts_the_header, dies_of_refused_refreshes
from lab.cases import SUBJECTS, case
from lab.kernel import FAILURE
from lab.peers.bleak_client import BleakJoin
from lab.peers.central import Central
from lab.peers.dbus_host import DBusHost
from lab.peers.peripheral import Peripheral


async def nobody_finds(lab):
    """No central hears a host that has the kit's service, for a while."""
    try:
        await Central.android(lab).find(timeout=3)
    except AssertionError:
        return
    raise AssertionError("a host is on the air")


def hold_adapter(index):
    """A raw socket on it: while that is open the kernel keeps the device, and its index, even when it is pulled out."""
    family, hci, raw_channel = 31, 1, 0  # AF_BLUETOOTH, BTPROTO_HCI, HCI_CHANNEL_RAW; not in every build of Python
    libc = ctypes.CDLL(None, use_errno=True)
    held = libc.socket(family, socket.SOCK_RAW | socket.SOCK_CLOEXEC, hci)
    if held < 0 or libc.bind(held, struct.pack("HHH", family, index, raw_channel), 6) != 0:
        raise OSError(ctypes.get_errno(), "the adapter cannot be held")
    return held


@case("stack/broadcast", bugs=("bluez/bluez#820", "bluez/bluez#1452"), subjects=SUBJECTS, timeout=90)
async def _(lab):
    """bluez.md 1: a notification reaches every subscriber, and one that leaves takes nobody's subscription along"""
    host = await DBusHost(lab).start()
    first, second = Central.iphone(lab), Central.android(lab)
    await first.go_to("subscribed")
    await host.advertise_again()
    await second.go_to("subscribed")
    await first.write()
    await first.answer()
    assert (await second.answer())["type"] == "handoff"
    await first.leave()
    await second.write()
    assert (await second.answer())["type"] == "handoff"


@case("stack/subscriber-is-told-by-acquire", bugs=("bluez/bluez#1106",), subjects=SUBJECTS)
async def _(lab):
    """bluez.md 2: NotSupported to AcquireNotify tells the device, and StartNotify follows"""
    host = await DBusHost(lab).start()
    phone = Central.iphone(lab)
    await phone.go_to("answered")
    [acquired] = host.seen("acquire")
    assert acquired["device"].endswith(str(phone.address).split("/")[0].replace(":", "_")), acquired
    assert host.seen("subscribed")
    assert acquired["mtu"] == phone.connection.att_mtu == 185, (acquired["mtu"], phone.connection.att_mtu)


@case(
    "stack/advertising-while-connected",
    bugs=("bluez/bluez#644", "spacecheese/bluez_peripheral#31"),
    subjects=SUBJECTS,
    timeout=90,
)
async def _(lab):
    """bluez.md 14: with a central connected, the host is on the air no more, though its instance is active"""
    host = await DBusHost(lab).start()
    await Central.iphone(lab).go_to("subscribed")
    await nobody_finds(lab)
    assert not lab.adapter("hci0").controller.advertises
    assert await lab.bluez.active_instances("hci0") == 1
    await host.advertise_again()
    await Central.android(lab).find()


@case("stack/write-512", bugs=("bluez/bluez#570",), subjects=SUBJECTS)
async def _(lab):
    """bluez.md 8: 510 bytes are accepted; 511 and 512 not from 5.56 to 5.68"""
    host = await DBusHost(lab).start()
    phone = Central.android(lab)
    await phone.go_to("subscribed")
    await phone.write(envelope.padded(510))
    await phone.answer()
    try:
        await phone.write(envelope.padded(512))
        outcome = "accepted"
    except att.ATT_Error as error:
        outcome = f"refused with ATT {error.error_code:#04x}"
    lab.note(f"512 bytes {outcome}")
    expected = "refused with ATT 0x0d" if counts_the_header(lab.bluez_version) else "accepted"
    assert outcome == expected, f"{outcome}, not {expected}"
    assert len(host.seen("written")) == (2 if outcome == "accepted" else 1)


@case("stack/long-writes", bugs=("bluez/bluez#570",), subjects=SUBJECTS, timeout=120)
async def _(lab):
    """Prepared writes: where bluetoothd counts the 4 header bytes, 508 is the most, not 510"""
    host = await DBusHost(lab, answer=lambda request: []).start()
    for mtu, lengths in ((23, (300, 508, 509, 512)), (185, (508, 509, 512))):
        phone = Central(lab, mtu=mtu, asks_mtu=mtu > 23)
        await phone.go_to("subscribed")
        for length in lengths:
            host.events.clear()
            try:
                await phone.write(envelope.padded(length))
                outcome = "ok"
            except att.ATT_Error as error:
                outcome = f"ATT {error.error_code:#04x}"
            parts = [(each["options"].get("offset", 0), len(each["value"])) for each in host.seen("written")]
            plain = parts == [(0, length)] and outcome == "ok"
            lab.note(f"MTU {mtu}, {length} bytes: {outcome}" + ("" if plain else f" {parts}"))
            if length <= 508 or not counts_the_header(lab.bluez_version):
                assert plain, f"{length} bytes at MTU {mtu}: {outcome}, offset and length {parts}"
            else:
                assert outcome == "ATT 0x0d" and not parts, f"{length} bytes at MTU {mtu}: {outcome}, {parts}"
        await phone.leave()
        await host.advertise_again()


@case("stack/truncates-silently", subjects=SUBJECTS)
async def _(lab):
    """bluez.md 7: a notification longer than MTU-3 is cut, and nobody is told"""
    message = envelope.handoff(payload={"note": "x" * 300})
    host = await DBusHost(lab, answer=lambda request: [message]).start()
    phone = Central(lab, mtu=100)
    await phone.go_to("subscribed")
    await phone.write()
    received = await asyncio.wait_for(phone.received.get(), lab.seconds(10))
    lab.note(f"{len(received)} of {len(message)} bytes at MTU {phone.connection.att_mtu}")
    assert message.startswith(received) and len(received) == phone.connection.att_mtu - 3
    assert host.seen("written")[0]["options"].get("mtu") == 100


@case("stack/power-cycle", bugs=("mcginty/blew#46",), subjects=SUBJECTS)
async def _(lab):
    """bluez.md 14: after a power cycle the instance is counted, no Release came, and nothing is on the air"""
    host = await DBusHost(lab).start()
    await lab.cycle_power("hci0")
    await nobody_finds(lab)
    assert not lab.adapter("hci0").controller.advertises
    active = await lab.bluez.active_instances("hci0")
    assert active == 1, f"ActiveInstances {active}"
    assert not host.seen("released")
    await host.advertise_again()
    await Central.android(lab).find()


@case("stack/refresh-too-long", subjects=SUBJECTS)
async def _(lab):
    """A registered advertisement becomes too long: before 5.56 the old one stays, up to 5.74 bluetoothd ends (BlueZ
    commit 6b5447583), later ones advertise the longer one with extended advertising"""
    host = await DBusHost(lab).start()
    others = [f"0000000{number}-1111-2222-3333-444444444444" for number in range(1, 4)]
    host.announce(ServiceUUIDs=[envelope.SERVICE, *others])
    crashed = await lab.bluetoothd.crashed(lab.seconds(2))
    assert crashed == dies_of_refused_refreshes(lab.bluez_version), "a crash" if crashed else "no crash any more"
    if crashed:
        await lab.bluez.wait_powered(["hci0"], lab.seconds(30))
        await nobody_finds(lab)
    else:
        await Central.android(lab).find()


@case("stack/supervision-time-out", subjects=SUBJECTS)
async def _(lab):
    """Both sides hear 0x08; BlueZ's device turns Connected=false, StopNotify comes"""
    host = await DBusHost(lab).start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    assert lab.medium.drop(["hci0"]) == 1
    await asyncio.wait_for(phone.lost.wait(), 5)
    for _ in range(50):
        devices = (await lab.bluez.devices()).values()
        if not any(each["Connected"] for each in devices) and host.seen("unsubscribed"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"after 5 s: {[each['Connected'] for each in devices]}, events {host.events}")


@case("stack/adapter-unplugged", subjects=SUBJECTS)
async def _(lab):
    """The adapter's objects go and come back under the same name; the other adapter never notices"""
    lab.adapter("hci1").unplug()
    for _ in range(100):
        if await lab.bluez.powered() == {"hci0"}:
            break
        await asyncio.sleep(0.1)
    assert await lab.bluez.powered() == {"hci0"}
    await DBusHost(lab).start()
    await lab.adapters[1].plug()
    await lab.bluez.wait_powered(["hci0", "hci1"], lab.seconds(20))
    assert (await BleakJoin(lab).join())["type"] == "handoff"


@case("stack/adapter-keeps-its-name", subjects=SUBJECTS)
async def _(lab):
    """The lab's own: an adapter comes back under its name, however long somebody holds on to the one before"""
    adapter = lab.adapter("hci1")
    held = hold_adapter(adapter.index)
    adapter.unplug()
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(1, os.close, held)
    await adapter.plug()
    assert adapter.name == "hci1" and loop.time() - began >= 1, f"{adapter.name} after {loop.time() - began:.1f} s"
    await lab.bluez.wait_powered(["hci0", "hci1"], lab.seconds(20))
    assert await lab.bluez.powered() == {"hci0", "hci1"}


@case("stack/bus-restarted", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """bluetoothd ends with the bus; after both are back, a new server serves"""
    await lab.restart_bus()
    await DBusHost(lab).start()
    await Central.iphone(lab).join()


async def pushed(lab, **how):
    """Whether BlueZ's client hears a notification that comes before its subscription is acknowledged."""
    host = Peripheral(lab, on_subscribe=lambda host, connection: host.notify(connection, envelope.handoff()))
    await host.start()
    client = BleakJoin(lab)
    await client.connect()
    try:
        await client.client.start_notify(
            envelope.MESSAGE, lambda characteristic, value: client.received.put_nowait(bytes(value)), bluez=how
        )
        assert host.reached["subscribed"].is_set()
        try:
            return (await client.answer(timeout=2))["type"] == "handoff"
        except asyncio.TimeoutError:
            return False
    finally:
        await client.client.disconnect()


@case("stack/server-pushes-on-subscription", bugs=("hbldh/bleak#374",), subjects=SUBJECTS)
async def _(lab):
    """bluez.md 22: after StartNotify, what comes before the subscription's acknowledgement is heard"""
    assert await pushed(lab, use_start_notify=True)


@case("stack/server-pushes-on-acquire", bugs=("hbldh/bleak#1885",), subjects=SUBJECTS)
async def _(lab):
    """bluez.md 22: after AcquireNotify it is lost, so nobody should use that"""
    heard = await pushed(lab, use_start_notify=False)
    assert not heard, "heard by now"


@case("stack/device-objects", subjects=SUBJECTS)
async def _(lab):
    """A central's device object, as a server sees it"""
    await DBusHost(lab).start()
    phone = Central.iphone(lab)
    await phone.go_to("connected")
    found = [values for path, values in (await lab.bluez.objects()).items() if values.get(DEVICE, {}).get("Connected")]
    assert [each[DEVICE]["AddressType"] for each in found] == ["random"], found


def may_block_while_pairing(version):
    """Seen on 5.55 and 5.66, at times, and never on 5.82; where between them it ends is not known."""
    return version < (5, 82)


async def served_while_pairing(lab, reaction):
    """What becomes of an exchange with a phone whose battery level is guarded, once bluetoothd has asked for pairing:
    "served", "link lost", or "blocked" (the link is up, and nothing is answered)."""
    await DBusHost(lab).start()
    phone = Central.guarded(lab, on_pairing=reaction)
    await phone.connect()
    await asyncio.wait_for(phone.pairing_asked.wait(), lab.seconds(8))

    async def exchange():
        await phone.discover()
        await phone.subscribe()
        await phone.write()
        await phone.answer()

    going = phone.later(exchange())
    await asyncio.wait([going], timeout=lab.seconds(6))
    if not going.done():
        return "blocked"
    if phone.lost.is_set():
        return "link lost"
    going.result()
    return "served"


for reaction in ("refuses", "accepts", None):

    @case(f"stack/pairing-{reaction or 'ignored'}", bugs=("bluez/bluez#38",), subjects=SUBJECTS, timeout=90)
    async def _(lab, reaction=reaction):
        """A phone guards its battery level, bluetoothd reads it and asks for pairing: the outcomes of docs/bluez.md"""
        outcome = await served_while_pairing(lab, reaction)
        lab.note(outcome)
        if reaction == "refuses":
            expected = {"link lost"}
        elif may_block_while_pairing(lab.bluez_version):
            expected = {"served", "blocked"}
        else:
            expected = {"served"}
        assert outcome in expected, f"{outcome}, not {' or '.join(expected)}"


@case("stack/kernel-log", timeout=20)
async def _(lab):
    """What the lab takes for a failure of the kernel, and what not: a program's crash, a processor that came late"""
    for message in (
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "kernel BUG at lib/list_debug.c:59!",
        "general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] PREEMPT SMP",
        "Oops: general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1]",
    ):
        assert FAILURE.search("4,1107,81250000,-;" + message), message
    for message in (
        "traps: bluetoothd[812] general protection fault ip:5581a0c0 sp:7ffd1c08 error:0 in bluetoothd[5581a000+a5000]",
        "bluetoothd[812]: segfault at 8 ip 5581a0c0 sp 7ffd1c08 error 4 in bluetoothd[5581a000+a5000]",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [bluetoothd:812]",
        "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
    ):
        assert not FAILURE.search("4,1107,81250000,-;" + message), message
