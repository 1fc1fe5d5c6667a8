# SPDX-License-Identifier: MIT
"""Our client, in front of hosts that are not BlueZ (Bumble): the plain, the odd and the wrong."""
import asyncio
import signal

from lab import envelope
from lab.cases import SUBJECTS, case
from lab.peers.peripheral import Peripheral, answers, refuses, says_nothing, splits


async def joined(lab, *hosts, **options):
    """Starts the hosts, joins, returns the outcome."""
    for host in hosts:
        await host.start()
    return await (await lab.join(**options).start()).outcome()


def expect(outcome, kind, code=None):
    assert outcome.kind == kind, f"{outcome}, not {kind}"
    if kind == "handoff":
        assert outcome.message == envelope.decode(envelope.handoff()), f"wrong payload: {outcome.message}"
    if code is not None:
        assert outcome.code == code, f"{outcome}, not {code}"


for mtu in (185, 517):

    @case(f"join/mtu-{mtu}", core=mtu == 185, subjects=SUBJECTS)
    async def _(lab, mtu=mtu):
        """A handoff in one notification"""
        expect(await joined(lab, Peripheral(lab, mtu=mtu)), "handoff")


@case("join/mtu-23", subjects=SUBJECTS)
async def _(lab):
    """A host at MTU 23 that sends its handoff in pieces of 20 bytes, without a header"""
    expect(await joined(lab, Peripheral(lab, splits(envelope.handoff(), 20), mtu=23)), "handoff")


@case("join/splits-without-header", subjects=SUBJECTS)
async def _(lab):
    """Three notifications make one JSON object"""
    expect(await joined(lab, Peripheral(lab, splits(envelope.handoff(), 60))), "handoff")


@case("join/truncated", bugs=("bluez/bluez#65",))
async def _(lab):
    """Cut at MTU-3 by the host's stack: a typed error, and never a wrong payload"""
    expect(await joined(lab, Peripheral(lab, mtu=100)), "error")


@case("join/att-error", subjects=("nearby",))
async def _(lab):
    """Older hosts reject by an ATT error on the write"""
    outcome = await joined(lab, Peripheral(lab, refuses(0x80)))
    assert outcome.kind in ("rejected", "error"), outcome


@case("join/answers-before-subscribed", bugs=("hbldh/bleak#1885",), timeout=75)
async def _(lab):
    """The notification is sent before the subscription is acknowledged"""
    host = Peripheral(
        lab, says_nothing, on_subscribe=lambda host, connection: host.notify(connection, envelope.handoff())
    )
    expect(await joined(lab, host), "handoff")


@case("join/never-answers", timeout=75)
async def _(lab):
    """A typed error within the limit that was asked for"""
    expect(await joined(lab, Peripheral(lab, says_nothing), timeout=20), "error")


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
    expect(await joined(lab, Peripheral(lab, answers(envelope.reject("denied")))), "rejected", "denied")


@case("join/unknown-reason", subjects=SUBJECTS)
async def _(lab):
    """A reason of the future is kept as it is"""
    expect(await joined(lab, Peripheral(lab, answers(envelope.reject("lunch_break")))), "rejected", "lunch_break")


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
    expect(await joined(lab, host, timeout=20), "error")


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
    expect(await joined(lab, Peripheral(lab, answers(b"\x00\xff\x17")), timeout=20), "error")


@case("join/named-without-uuid", timeout=60)
async def _(lab):
    """It has the name and the service, but does not advertise it: not found, and said so"""
    expect(await joined(lab, Peripheral(lab, name="nearby", uuid_in=None), timeout=8), "error")


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
    first = host.add_service(says_nothing)
    second = host.add_service(says_nothing)

    def behaviour(characteristic, message):
        async def behave(host, connection, request):
            await asyncio.sleep(0.05)
            host.notify(connection, message, characteristic)

        return behave

    for characteristic, message in ((first, envelope.reject("app_mismatch")), (second, envelope.handoff())):
        characteristic.value.write = _written(host, characteristic, behaviour(characteristic, message))
    expect(await joined(lab, host), "handoff")


def _written(host, characteristic, behave):
    return lambda connection, value: host._written(connection, bytes(value), characteristic, behave)


@case("join/nobody", core=True)
async def _(lab):
    """Nobody near: a typed error when the time is up, not before and not long after"""
    expect(await joined(lab, timeout=5), "error")


@case("join/adapter-missing")
async def _(lab):
    """--adapter hci9"""
    expect(await joined(lab, adapter="hci9", timeout=5), "error")


@case("join/adapter-off")
async def _(lab):
    """Without power: said so at once or when the time is up"""
    await lab.bluez.set_powered("hci1", False)
    expect(await joined(lab, timeout=5), "error")


@case("join/no-bluetoothd")
async def _(lab):
    """No BlueZ on the bus: a typed error"""
    await lab.bluetoothd.end()
    expect(await joined(lab, timeout=5), "error")


@case("join/cached-but-gone", timeout=75)
async def _(lab):
    """bluetoothd still lists it, but it is out of range"""
    host = await Peripheral(lab).start()
    expect(await (await lab.join().start()).outcome(), "handoff")
    host.vanish()
    expect(await (await lab.join(timeout=8).start()).outcome(), "error")


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
    lab.medium.drop(["hci1"], 0x3E)  # connection failed to be established
    expect(await join.outcome(), "handoff")


for step in Peripheral.STEPS[:3]:

    @case(f"join/host-vanishes-{step}", timeout=90)
    async def _(lab, step=step):
        """The host is gone for good at that step: a typed error"""
        host = await Peripheral(lab, says_nothing).start()
        join = await lab.join(timeout=25).start()
        await host.wait(step)
        host.vanish()
        expect(await join.outcome(), "error")


@case("join/interrupted", timeout=75)
async def _(lab):
    """SIGINT while it waits for the answer: ends soon, and leaves no link"""
    host = await Peripheral(lab, says_nothing).start()
    join = await lab.join().start()
    await host.wait("written")
    join.nearby.send(signal.SIGINT)
    assert await join.nearby.exit(10) != 0
    await host.wait("disconnected", timeout=8)
