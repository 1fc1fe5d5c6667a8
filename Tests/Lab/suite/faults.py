# SPDX-License-Identifier: MIT
"""The stack fails under us, at each step of an exchange, in both roles.

The outcome, each time and within 15 s of the stack's return: a completed handoff. Never a hang, never a wrong payload,
never a silent end.
"""
import asyncio
import signal

from bumble import att, core

from lab import envelope
from lab.bluez import BusError
from lab.cases import case
from lab.peers.central import Central, NotServed
from lab.peers.dbus_host import DBusHost
from lab.peers.peripheral import Peripheral, answers
from lab.radio import ADVERTISING_SETS

from .host_centrals import expect_handoff

#: Seconds after the stack's return in which the host must serve again, or the join must have its handoff.
RECOVERY = 15
#: … and from the next process's start, after a SIGKILL. On a link that BlueZ kept, 5.66 now and then does not
#: answer a subscription: given up after 10 s (docs/bluez.md).
NEXT = RECOVERY + 10


async def bluetoothd_restarted(lab, adapter, process):
    await lab.restart_bluetoothd()


async def powered_off_and_on(lab, adapter, process):
    await lab.cycle_power(adapter)


async def adapter_replugged(lab, adapter, process):
    await lab.replug(adapter)


async def link_dropped(lab, adapter, process):
    """By the peer, politely: 0x13."""
    lab.medium.drop([adapter], 0x13)


async def link_timed_out(lab, adapter, process):
    """Supervision time-out: both sides hear 0x08."""
    lab.medium.drop([adapter])


async def bus_restarted(lab, adapter, process):
    await lab.restart_bus()


async def process_killed(lab, adapter, process):
    """Our own, by SIGKILL; the case starts another. What stays behind is noted."""
    await process.kill()
    links, devices = len(lab.medium.links_of(adapter)), await lab.once_more(lab.bluez.devices, adapter)
    known = [values for path, values in devices.items() if f"/{adapter}/" in path]
    await lab.until(lambda: not lab.adapter(adapter).controller.advertises, "off the air when its owner is gone", 5)
    # One that was just being registered: bluetoothd watches its owner only from the kernel's answer on
    # (src/advertising.c, add_adv_callback), and counts it for good.
    advertisements = await lab.once_more(lambda: lab.advertisements_left(adapter), adapter)
    lab.note(f"left {links} links, {len(known)} devices, {advertisements} advertisements")


FAULTS = {
    "bluetoothd": bluetoothd_restarted,
    "power": powered_off_and_on,
    "adapter": adapter_replugged,
    "dropped": link_dropped,
    "timeout": link_timed_out,
    "bus": bus_restarted,
    "killed": process_killed,
}
#: Public reports of what others' software did then: (role, fault).
BUGS = {
    ("host", "bluetoothd"): ("project-chip/connectedhomeip#30792",),
    ("host", "power"): ("mcginty/blew#46",),
    ("host", "adapter"): ("project-chip/connectedhomeip#30792",),
    ("join", "bluetoothd"): ("SignalK/signalk-server#3057",),
    ("join", "power"): ("weliem/bluez_inc#46",),
    ("join", "adapter"): ("deviceplug/btleplug#56", "openhab/openhab-addons#21304"),
    ("join", "bus"): ("home-assistant/core#76249",),
    ("join", "killed"): ("hbldh/bleak#315", "hbldh/bleak#367", "hbldh/bleak#992"),
}
#: … and of one step: (role, fault, step).
MORE_BUGS = {("join", "bluetoothd", "scanning"): ("hbldh/bleak#859", "bluez/bluer#47")}
#: On every BlueZ; elsewhere all of them.
CORE = {
    ("bluetoothd", "advertising"),
    ("bluetoothd", "written"),
    ("power", "subscribed"),
    ("adapter", "advertising"),
    ("timeout", "written"),
    ("bus", "advertising"),
    ("killed", "subscribed"),
}
STEPS = ("advertising", *Central.STEPS)


def bugs(role, fault, step):
    return BUGS.get((role, fault), ()) + MORE_BUGS.get((role, fault, step), ())


def expect_nothing_wrong(lab, hosts, phones):
    """Whatever any phone heard is the handoff, and no host says of anybody more than it knows."""
    for phone in phones:
        for value in phone.heard:
            expect_handoff(envelope.decode(value))
    known = {f"/org/bluez/hci0/dev_{phone.address.to_string(False).replace(':', '_')}": phone for phone in phones}
    handed_off = set()
    for event in (event for host in hosts for event in host.nearby.events):
        assert event["event"] != "rejected", f"nobody was to be rejected: {event}"
        if event["event"] == "handedOff":
            handed_off.add(event["client"])
        if event["event"] == "delivered":
            assert event["client"] in handed_off, f"delivered before it was handed off: {event}"
            if not known[event["client"]].heard:
                # In the basic profile that is who has left after the notification: there is no receipt.
                lab.note("delivered to one who heard nothing")
    heard = {client for client, phone in known.items() if phone.heard}
    assert heard <= handed_off, f"{heard - handed_off} heard a handoff that no host knows of"


def in_time(lab, began, crashes, seconds=RECOVERY):
    """Whether there is still time. A crash of bluetoothd's own (5.66 and 5.82 have them) is one more fault, and the
    stack's return one more."""
    returns = 1 + len(lab.bluetoothd.crashes) - crashes
    return asyncio.get_running_loop().time() < began + returns * lab.seconds(seconds)


async def served_again(lab, hosts, struck=(), began=None):
    """A phone gets its handoff; it tries again until the time is up, as its user would. What it may try again is that
    nobody is found, that the link is lost or refused, that nothing comes in time: never what it was told. `struck` are
    the phones that met the fault, `hosts` the process that serves and any that did before."""
    clock, crashes = asyncio.get_running_loop().time, len(lab.bluetoothd.crashes)
    began = clock() if began is None else began
    phones = list(struck)
    while True:
        phone = Central.android(lab)
        phones.append(phone)
        try:
            answer = await asyncio.wait_for(phone.join(), lab.seconds(RECOVERY))
        except (NotServed, ConnectionError, asyncio.TimeoutError, core.BaseBumbleError) as error:
            if isinstance(error, att.ATT_Error) and error.error_code >= envelope.APPLICATION_ERROR:
                raise  # that is the host's own no
            if not in_time(lab, began, crashes):
                raise AssertionError(f"does not serve again within {RECOVERY} s ({error!r})") from error
            continue
        finally:
            await phone.close()
        expect_handoff(answer)
        break
    assert in_time(lab, began, crashes), f"served after {clock() - began:.1f} s, not within {RECOVERY} s"
    attempts = len(phones) - len(struck)
    lab.note(f"after {clock() - began:.1f} s" + (f", {attempts} attempts" if attempts > 1 else ""))
    expect_nothing_wrong(lab, hosts, phones)


for fault in FAULTS:
    for step in STEPS:
        if step == "advertising" and fault in ("dropped", "timeout"):
            continue  # there is no link yet

        @case(
            f"fault/host/{fault}-{step}", core=(fault, step) in CORE, bugs=bugs("host", fault, step), timeout=120
        )
        async def _(lab, fault=fault, step=step):
            """The host serves again: by itself, or a new one after a SIGKILL"""
            hosts, struck = [await lab.host().start()], []
            if step != "advertising":
                struck.append(Central.iphone(lab))
                await struck[0].go_to(step)
            await FAULTS[fault](lab, "hci0", hosts[0])
            began = asyncio.get_running_loop().time()
            if fault == "killed":
                hosts.append(await lab.host().start())
            await served_again(lab, hosts, struck, began)
            assert hosts[-1].running, "nearby host has ended"


for fault in FAULTS:
    for step in ("scanning", *Peripheral.STEPS):
        if step == "scanning" and fault in ("dropped", "timeout"):
            continue
        known = (fault, step.replace("scanning", "advertising"))

        @case(f"fault/join/{fault}-{step}", core=known in CORE, bugs=bugs("join", fault, step), timeout=150)
        async def _(lab, fault=fault, step=step):
            """The join ends with the handoff: the same, or a new one after a SIGKILL"""
            withheld = asyncio.Event()

            async def behave(host, connection, request):
                # The first request is not answered where the fault is to come first.
                if step in ("written", "subscribed", "connected") and not withheld.is_set():
                    return
                await answers(envelope.handoff())(host, connection, request)

            host = Peripheral(lab, behave)
            if step != "scanning":
                await host.start()
            join = await lab.join(timeout=120).start()
            if step == "scanning":
                await join.nearby.event("scanning")
                await lab.until(lambda: lab.adapter("hci1").controller.le_scan_enable, "the adapter scans")
            else:
                await host.wait(step, timeout=30)
            await FAULTS[fault](lab, "hci1", join)
            began = asyncio.get_running_loop().time()
            withheld.set()
            if fault == "killed":
                for event in join.nearby.events:
                    assert event["event"] != "error", event
                    if event["event"] == "handoff":
                        assert event["payload"] == envelope.PAYLOAD, f"wrong payload: {event}"
                join = await lab.join(timeout=120).start()
            if step == "scanning":
                await host.start()
            # Its own time limit is far away: it has to go on by itself.
            crashes = len(lab.bluetoothd.crashes)
            while join.running and in_time(lab, began, crashes, NEXT if fault == "killed" else RECOVERY):
                await asyncio.sleep(0.05)
            outcome = await join.outcome(1)
            lab.note(f"after {asyncio.get_running_loop().time() - began:.1f} s")
            assert outcome.kind == "handoff", outcome
            assert outcome.message == envelope.decode(envelope.handoff()), f"wrong payload: {outcome.message}"


@case("fault/host/no-adapter-at-start", bugs=("project-chip/connectedhomeip#30792",), timeout=90)
async def _(lab):
    """No adapter when it starts, one later (hot plug)"""
    lab.adapter("hci0").unplug()
    host = lab.host(more=("--wait",))
    await host.nearby.start()
    await host.nearby.event("unavailable")
    await lab.adapters[0].plug()
    await lab.bluez.wait_powered(["hci0"], lab.seconds(30))
    await served_again(lab, [host])


@case("fault/host/no-room", bugs=("weliem/bluez_inc#8",), core=True, timeout=120)
async def _(lab):
    """While bluetoothd is away others take all the room there is for advertisements: the host says what it lacks, asks
    again by itself, and is found once they have left"""
    host = await lab.host().start()
    host.nearby.send(signal.SIGSTOP)  # so that it surely comes last
    await lab.restart_bluetoothd()
    others = []
    try:
        while len(others) < 20:
            others.append(await DBusHost(lab).only_advertise())
    except BusError as error:
        assert error.name == "org.bluez.Error.NotPermitted", error
    assert await lab.bluez.active_instances("hci0") == len(others) == ADVERTISING_SETS
    host.nearby.send(signal.SIGCONT)
    refused = await host.nearby.event("unavailable", count=2)
    assert refused["code"] == "advertisingFailed", refused
    lab.note(refused["message"])
    for other in others:
        await other.stop()
    await served_again(lab, [host])
    again = await host.nearby.event("serving", count=2)
    assert "degraded" not in again, again


@case("fault/host/power-many-times", core=True, timeout=150)
async def _(lab):
    """Off and on again more often than there is room for advertisements: bluetoothd keeps one whose adapter is off, until it
    is taken back"""
    host = await lab.host().start()
    for times in range(1, ADVERTISING_SETS + 3):
        await lab.cycle_power("hci0", pause=0.3)
        served = await host.nearby.event("serving", count=times + 1)
        assert "degraded" not in served, f"power cycle {times}: {served}"
        active = await lab.bluez.active_instances("hci0")
        assert active == 1, f"{active} advertisements after power cycle {times}"
    await served_again(lab, [host])


@case("fault/host/slow-link", timeout=90)
async def _(lab):
    """A slow link, 300 ms each way"""
    await lab.host().start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    lab.medium.latency = 0.3
    await phone.write()
    expect_handoff(await phone.answer())
    await phone.leave()


@case("fault/host/silence", timeout=90)
async def _(lab):
    """A phone out of reach whose link has not timed out yet: nothing comes through. Another is served meanwhile, and it
    itself once it is back"""
    host = await lab.host().start()
    lost = Central.iphone(lab)
    await lost.go_to("subscribed")
    lab.medium.silent.add(lost.name)
    await served_again(lab, [host])
    assert not lost.heard, f"nothing should have come through: {lost.heard}"
    lab.medium.silent.clear()
    await lost.write()
    expect_handoff(await lost.answer())


@case("fault/join/silence", timeout=120)
async def _(lab):
    """Nothing comes through any more once the request is written, and the link stays up: given up, tried again, and
    joined when the host can be heard again"""
    host = Peripheral(lab)
    host.behave = _falls_silent
    await host.start()
    join = await lab.join(timeout=60).start()
    await join.nearby.event("connecting", count=2, timeout=40)
    lab.medium.silent.clear()
    outcome = await join.outcome()
    assert outcome.kind == "handoff", outcome
    assert outcome.message == envelope.decode(envelope.handoff()), f"wrong payload: {outcome.message}"


async def _falls_silent(host, connection, request):
    if len(host.requests) == 1:
        host.lab.medium.silent.add(host.name)
    await answers(envelope.handoff())(host, connection, request)
