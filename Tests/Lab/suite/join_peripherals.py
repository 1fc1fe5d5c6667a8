# SPDX-License-Identifier: MIT
"""Our client, in front of hosts that are not BlueZ (Bumble): the plain, the odd and the wrong."""
import signal
import time

from lab import envelope
from lab.cases import SUBJECTS, case
from lab.peers.peripheral import Peripheral, answers, refuses, says_nothing, splits


#: docs/cli.md, "Exit codes".
NO_SERVICE, NO_ADAPTER, ADAPTER_OFF, NOTHING_FOUND, FAILED, REFUSED, INTERRUPTED = 69, 72, 73, 75, 76, 79, 130


async def joined(lab, *hosts, **options):
    """Starts the hosts, joins, returns the outcome."""
    for host in hosts:
        await host.start()
    return await (await lab.join(**options).start()).outcome()


def expect(outcome, kind, code=None, status=None):
    assert outcome.kind == kind, f"{outcome}, not {kind}"
    if kind == "handoff":
        assert outcome.message == envelope.decode(envelope.handoff()), f"wrong payload: {outcome.message}"
    if code is not None:
        assert outcome.code == code, f"{outcome}, not {code}"
    if status is not None:
        assert outcome.status == status, f"{outcome}, not exit {status}"


def expect_failed(outcome, host):
    """The host was found and asked, and the exchange came to nothing."""
    expect(outcome, "error", "linkFailed", FAILED)
    assert host.requests, "the host was never asked"


async def expect_stopped_after(count, join, host):
    """So many bytes of an answer came, and it is said that they are not all."""
    expect_failed(await join.outcome(), host)
    [error] = [event for event in join.nearby.events if event["event"] == "error"]
    assert f"stopped after {count} bytes" in error["message"], error["message"]


def expect_nothing_found(join, outcome):
    """Nothing that offers the kit's service was heard at all."""
    expect(outcome, "error", "nothingFound", NOTHING_FOUND)
    [error] = [event for event in join.nearby.events if event["event"] == "error"]
    counts = {key: error.get(key) for key in ("seen", "tooFar", "otherApp", "failed")}
    assert not any(counts.values()) and None not in counts.values(), counts


def expect_mtu(host, mtu):
    assert [each.att_mtu for each in host.connections] == [mtu], [each.att_mtu for each in host.connections]


async def in_time(lab, join):
    """The outcome, which must come when the time is up: not before, and not long after."""
    began = time.monotonic()
    outcome = await (await join.start()).outcome()
    took = time.monotonic() - began
    # The process starts before its limit does, and takes a link down after it.
    assert join.limit <= took <= join.limit + lab.seconds(6), f"{outcome} after {took:.1f} s of {join.limit}"
    return outcome


for mtu in (185, 517):

    @case(f"join/mtu-{mtu}", core=mtu == 185, subjects=SUBJECTS)
    async def _(lab, mtu=mtu):
        """A handoff in one notification"""
        host = Peripheral(lab, mtu=mtu)
        expect(await joined(lab, host), "handoff")
        expect_mtu(host, mtu)


@case("join/mtu-23", subjects=SUBJECTS)
async def _(lab):
    """A host at MTU 23 that sends its handoff in pieces of 20 bytes, without a header"""
    host = Peripheral(lab, splits(envelope.handoff(), 20), mtu=23)
    expect(await joined(lab, host), "handoff")
    expect_mtu(host, 23)


@case("join/splits-without-header", subjects=SUBJECTS)
async def _(lab):
    """Three notifications make one JSON object"""
    expect(await joined(lab, Peripheral(lab, splits(envelope.handoff(), 60))), "handoff")


@case("join/truncated", bugs=("h2zero/esp-nimble-cpp#436",))
async def _(lab):
    """Cut at MTU-3 by the host's stack: a typed error, and never a wrong payload"""
    host = await Peripheral(lab, mtu=100).start()
    await expect_stopped_after(97, await lab.join(timeout=15).start(), host)
    expect_mtu(host, 100)


@case("join/notifies-beyond-its-mtu", bugs=("bluez/bluez#576",))
async def _(lab):
    """The host agrees to 23 and notifies a whole handoff: bluetoothd gives 20 bytes of it, which are no answer"""
    host = await Peripheral(lab, answers(envelope.handoff(), cut=False), mtu=23).start()
    await expect_stopped_after(20, await lab.join(timeout=15).start(), host)
    expect_mtu(host, 23)


@case("join/att-error", subjects=("nearby",))
async def _(lab):
    """Older hosts reject by an ATT error on the write"""
    expect(await joined(lab, Peripheral(lab, refuses(0x80))), "rejected", 0x80, REFUSED)


@case("join/answers-before-subscribed", bugs=("hbldh/bleak#1885", "hbldh/bleak#374"), timeout=75)
async def _(lab):
    """The notification is sent before the subscription is acknowledged"""
    host = Peripheral(
        lab, says_nothing, on_subscribe=lambda host, connection: host.notify(connection, envelope.handoff())
    )
    expect(await joined(lab, host), "handoff")


@case("join/never-answers", timeout=75)
async def _(lab):
    """A typed error at the limit that was asked for"""
    host = await Peripheral(lab, says_nothing).start()
    expect_failed(await in_time(lab, lab.join(timeout=20)), host)


@case("join/answers-twice", subjects=SUBJECTS)
async def _(lab):
    """One handoff comes of it"""
    expect(await joined(lab, Peripheral(lab, answers(envelope.handoff(), envelope.handoff()))), "handoff")


@case("join/slow-answer", timeout=75)
async def _(lab):
    """6 seconds after the request: the other side's user was thinking"""
    expect(await joined(lab, Peripheral(lab, answers(envelope.handoff(), pause=6))), "handoff")


@case("join/rejected", core=True, subjects=SUBJECTS)
async def _(lab):
    """With its reason"""
    outcome = await joined(lab, Peripheral(lab, answers(envelope.reject("denied"))))
    expect(outcome, "rejected", "denied", REFUSED if lab.subject == "nearby" else None)


@case("join/unknown-reason", subjects=SUBJECTS)
async def _(lab):
    """A reason of the future is kept as it is"""
    outcome = await joined(lab, Peripheral(lab, answers(envelope.reject("lunch_break"))))
    expect(outcome, "rejected", "lunch_break", REFUSED if lab.subject == "nearby" else None)


@case("join/wrong-host-first", timeout=120)
async def _(lab):
    """Another app's host is nearer; the right one is joined all the same"""
    wrong = Peripheral(lab, answers(envelope.reject("app_mismatch")), name="WRONG")
    wrong.rssi = -30
    await wrong.start()
    join = await lab.join(timeout=60).start()
    await wrong.wait("written")
    await Peripheral(lab, name="RIGHT").start()
    expect(await join.outcome(), "handoff")


@case("join/other-apps-handoff", timeout=75)
async def _(lab):
    """A handoff that was meant for another app is never taken"""
    host = Peripheral(lab, answers(envelope.handoff(envelope.OTHER_APP)))
    expect_failed(await joined(lab, host, timeout=20), host)
    assert host.reached["answered"].is_set()


@case("join/other-apps-answer-first", timeout=75)
async def _(lab):
    """Another client's answers come by before our own (broadcast)"""
    host = Peripheral(
        lab,
        answers(
            envelope.handoff(envelope.OTHER_APP), envelope.reject("denied", envelope.OTHER_APP), envelope.handoff()
        ),
    )
    expect(await joined(lab, host), "handoff")


@case("join/garbage-answer", timeout=75)
async def _(lab):
    """Bytes that are no JSON: a typed error"""
    host = Peripheral(lab, answers(b"\x00\xff\x17"))
    expect_failed(await joined(lab, host, timeout=20), host)
    assert host.reached["answered"].is_set()


@case("join/named-without-uuid", timeout=60)
async def _(lab):
    """It has the name and the service, but does not advertise it: not found, and said so. Once it does, it is joined"""
    host = await Peripheral(lab, name="nearby", uuid_in=None).start()
    join = await lab.join(timeout=8).start()
    expect_nothing_found(join, await join.outcome())
    assert not host.connections, "it was connected to for its name"
    await host.device.stop_advertising()
    host.uuid_in = "advertisement"
    await host.advertise()
    expect(await (await lab.join().start()).outcome(), "handoff")


@case("join/uuid-in-scan-response", subjects=SUBJECTS)
async def _(lab):
    """Where the advertisement is full, the UUID is in the response"""
    expect(await joined(lab, Peripheral(lab, uuid_in="response")), "handoff")


@case("join/extra-services", subjects=SUBJECTS)
async def _(lab):
    """A host with a lot else to offer, before and after"""
    host = Peripheral(lab)
    host.add_extra_service("FFE0")
    host.add_extra_service("180F")
    host.add_service()
    host.add_extra_service("FFF0", 6)
    expect(await joined(lab, host), "handoff")


@case("join/two-services", bugs=("hbldh/bleak#362",), timeout=90)
async def _(lab):
    """Two instances of the service on one device: the first is another app's"""
    host = Peripheral(lab)
    first, second = host.add_service(), host.add_service()
    host.behave_on(first, answers(envelope.reject("app_mismatch"), on=first))
    host.behave_on(second, answers(envelope.handoff(), on=second))
    expect(await joined(lab, host), "handoff")
    assert len(host.requests) == 2, f"{len(host.requests)} of two instances were asked"


@case("join/nobody", core=True)
async def _(lab):
    """Nobody near: a typed error when the time is up, not before and not long after"""
    join = lab.join(timeout=5)
    expect_nothing_found(join, await in_time(lab, join))


@case("join/adapter-missing")
async def _(lab):
    """--adapter hci9"""
    expect(await joined(lab, adapter="hci9", timeout=5), "error", "adapterNotFound", NO_ADAPTER)


@case("join/adapter-off")
async def _(lab):
    """Without power: said so at once or when the time is up"""
    await lab.bluez.set_powered("hci1", False)
    expect(await joined(lab, timeout=5), "error", "poweredOff", ADAPTER_OFF)


@case("join/no-bluetoothd")
async def _(lab):
    """No BlueZ on the bus: a typed error"""
    await lab.bluetoothd.end()
    expect(await joined(lab, timeout=5), "error", "serviceUnavailable", NO_SERVICE)


@case("join/cached-but-gone", timeout=75)
async def _(lab):
    """bluetoothd still lists it, but it is out of range"""
    host = await Peripheral(lab).start()
    expect(await (await lab.join().start()).outcome(), "handoff")
    host.vanish()
    names = [each.get("Name") for each in (await lab.bluez.devices()).values()]
    assert host.local_name in names, f"bluetoothd lists {names}"
    join = await lab.join(timeout=8).start()
    expect_nothing_found(join, await join.outcome())


@case("join/twice", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """The second time with bluetoothd's cache warm"""
    await Peripheral(lab).start()
    expect(await (await lab.join().start()).outcome(), "handoff")
    expect(await (await lab.join().start()).outcome(), "handoff")


@case("join/first-connection-fails", bugs=("bluez/bluez#1489",), timeout=90)
async def _(lab):
    """The first link is lost at once; the next attempt gets through"""
    host = await Peripheral(lab).start()
    join = await lab.join(timeout=45).start()
    await host.wait("connected")
    assert lab.medium.drop(["hci1"], 0x3E) == 1  # connection failed to be established
    expect(await join.outcome(), "handoff")
    assert len(host.connections) > 1, "it was the first link that served"


for step in Peripheral.STEPS[:3]:

    @case(f"join/host-vanishes-{step}", timeout=90)
    async def _(lab, step=step):
        """The host is gone for good at that step: a typed error"""
        host = await Peripheral(lab, says_nothing).start()
        join = await lab.join(timeout=25).start()
        await host.wait(step)
        host.vanish()
        expect(await join.outcome(), "error", "linkFailed", FAILED)


@case("join/interrupted", timeout=75)
async def _(lab):
    """SIGINT while it waits for the answer: ends soon, and leaves no link"""
    host = await Peripheral(lab, says_nothing).start()
    join = await lab.join().start()
    await host.wait("written")
    join.nearby.send(signal.SIGINT)
    assert await join.nearby.exit(10) == INTERRUPTED, f"exit status {join.nearby.process.returncode}"
    await host.wait("disconnected", timeout=8)
