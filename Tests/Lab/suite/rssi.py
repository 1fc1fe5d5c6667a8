# SPDX-License-Identifier: MIT
"""RSSI on the real stack: the gate and the choice, with what is heard changed during one scan."""
import asyncio

from lab import envelope, trace
from lab.cases import case
from lab.peers.peripheral import Peripheral, answers

from .join_peripherals import expect

NEAR = ("--min-rssi", "-60")
STRONGEST = ("--select", "strongest")


def named(name):
    return answers(envelope.handoff(payload={"roomCode": name}))


def hears(lab, value, **options):
    """A host of which `value` dBm are heard."""
    host = Peripheral(lab, **options)
    host.rssi = value
    return host


def candidates(join):
    """What the join has judged, oldest first: lists of hosts with `name`, `rssi` and `near`."""
    return [event["hosts"] for event in join.nearby.events if event["event"] == "candidates"]


async def judged(lab, join, true, what):
    """Waits until the newest list of candidates is so."""
    await lab.until(lambda: candidates(join) and true(candidates(join)[-1]), what)


NONE_NEAR = "one host was heard, none near enough"


def expect_none(outcome, said=""):
    """Nothing was found, and the reason that is given."""
    expect(outcome, "error", "nothingFound")
    assert outcome.status == 75, outcome
    assert said in outcome.said, f"{outcome.said!r} does not say {said!r}"


def expect_heard(lab, value):
    """It was heard often enough to decide alone: five readings, each an advertisement and its scan response."""
    heard = trace.heard_at(lab.recorder.packets, "hci1", value)
    assert heard >= 10, f"{value} dBm was reported {heard} times only, which says nothing"


@case("rssi/near-enough", core=True)
async def _(lab):
    """-55 dBm passes a threshold of -60"""
    await hears(lab, -55).start()
    expect(await (await lab.join(more=NEAR).start()).outcome(), "handoff")


@case("rssi/too-far", timeout=60)
async def _(lab):
    """-75 dBm does not, and the error tells that something was seen"""
    host = await hears(lab, -75).start()
    expect_none(await (await lab.join(timeout=8, more=NEAR).start()).outcome(), NONE_NEAR)
    assert not host.connections, "connected below the threshold"


@case("rssi/comes-nearer", core=True, timeout=75)
async def _(lab):
    """Too far at first, joined when it has come near, in the same scan: by 5 dB, of which bluetoothd tells only those
    who ask (the step is 8 dB otherwise)"""
    host = await hears(lab, -62).start()
    join = await lab.join(timeout=40, more=NEAR).start()
    await judged(lab, join, lambda hosts: hosts[0].get("rssi") == -62, "the host is heard with -62 dBm")
    assert not candidates(join)[-1][0]["near"] and not host.connections, "joined below the threshold"
    host.rssi = -57
    expect(await join.outcome(), "handoff")


@case("rssi/goes-a-little", timeout=75)
async def _(lab):
    """Once near it stays so down to 4 dB below the threshold: -58, then -63, where nobody becomes near"""
    host = await hears(lab, -58).start()
    join = await lab.join(more=(*NEAR, *STRONGEST)).start()
    await judged(lab, join, lambda hosts: hosts[0]["near"], "the host is near")
    host.rssi = -63
    expect(await join.outcome(), "handoff")
    expect_heard(lab, -63)


@case("rssi/goes", timeout=75)
async def _(lab):
    """… and no further: -58, then -66, is gone again before it is joined"""
    host = await hears(lab, -58).start()
    join = await lab.join(timeout=8, more=(*NEAR, *STRONGEST)).start()
    await judged(lab, join, lambda hosts: hosts[0]["near"], "the host is near")
    host.rssi = -66
    expect_none(await join.outcome())
    expect_heard(lab, -66)
    assert not host.connections, "connected below the threshold"


@case("rssi/one-strong-reading", timeout=75)
async def _(lab):
    """One reflection is not nearness: the median decides"""
    host = await hears(lab, -75).start(interval=200)
    join = await lab.join(timeout=12, more=NEAR).start()
    await asyncio.sleep(4)
    host.rssi = -40
    await asyncio.sleep(0.25)
    host.rssi = -75
    expect_none(await join.outcome(), NONE_NEAR)
    assert trace.heard_at(lab.recorder.packets, "hci1", -40), "the strong reading was not heard"
    assert not host.connections, "connected for one strong reading"


@case("rssi/unavailable", timeout=60)
async def _(lab):
    """127 is not near"""
    host = await hears(lab, 127).start()
    # The kernel drops what has no reading where the filter has a threshold: nobody hears of it at all.
    expect_none(await (await lab.join(timeout=8, more=NEAR).start()).outcome(), "no host of com.example.lab was heard")
    assert not host.connections, "connected without a reading"


@case("rssi/strongest", timeout=75)
async def _(lab):
    """The nearest of three"""
    for name, value in (("far", -80), ("near", -40), ("middle", -60)):
        await hears(lab, value, behave=named(name), name=name.upper()).start()
    outcome = await (await lab.join(more=STRONGEST).start()).outcome()
    assert outcome.kind == "handoff" and outcome.message["payload"]["roomCode"] == "near", outcome


@case("rssi/strongest-after-a-change", timeout=75)
async def _(lab):
    """Who is nearest changes while the window is open: it is the one who is nearest in the end"""
    first = hears(lab, -50, behave=named("first"), name="FIRST")
    second = hears(lab, -70, behave=named("second"), name="SECOND")
    await first.start()
    await second.start()
    join = await lab.join(more=STRONGEST).start()
    wanted = [("FIRST", -50), ("SECOND", -70)]
    await judged(lab, join, lambda hosts: [(each["name"], each.get("rssi")) for each in hosts] == wanted, "both are heard")
    first.rssi, second.rssi = -80, -45
    outcome = await join.outcome()
    assert outcome.kind == "handoff" and outcome.message["payload"]["roomCode"] == "second", outcome


@case("rssi/radio-that-reports-once", timeout=75)
async def _(lab):
    """A controller that drops duplicates reports each advertiser once a scan: the last reading holds"""
    lab.adapter("hci1").controller.drop_duplicates = True
    await hears(lab, -55).start()
    expect(await (await lab.join(more=NEAR).start()).outcome(), "handoff")
