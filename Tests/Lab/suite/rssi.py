# SPDX-License-Identifier: MIT
"""RSSI on the real stack: the gate and the choice, with what is heard changed during one scan."""
import asyncio

from lab import envelope
from lab.cases import case
from lab.peers.peripheral import Peripheral, answers

from .join_peripherals import expect


def named(name):
    return answers(envelope.handoff(payload={"roomCode": name}))


@case("rssi/near-enough", core=True)
async def _(lab):
    """-55 dBm passes a threshold of -60"""
    host = Peripheral(lab)
    host.rssi = -55
    await host.start()
    expect(await (await lab.join(more=("--min-rssi", "-60")).start()).outcome(), "handoff")


@case("rssi/too-far", timeout=60)
async def _(lab):
    """-75 dBm does not, and the error tells that something was seen"""
    host = Peripheral(lab)
    host.rssi = -75
    await host.start()
    expect(await (await lab.join(timeout=8, more=("--min-rssi", "-60")).start()).outcome(), "error")
    assert not host.requests


@case("rssi/comes-nearer", timeout=75)
async def _(lab):
    """Too far at first; joined when it has come near, in the same scan. Steps below 8 dB must be heard, too"""
    host = Peripheral(lab)
    host.rssi = -70
    await host.start()
    join = await lab.join(timeout=40, more=("--min-rssi", "-60")).start()
    for value in (-68, -65, -62, -59):
        await asyncio.sleep(1)
        assert not host.requests, f"joined below the threshold, before {value} dBm"
        host.rssi = value
    host.rssi = -54
    expect(await join.outcome(), "handoff")


@case("rssi/one-strong-reading", timeout=75)
async def _(lab):
    """One reflection is not nearness: the median decides"""
    host = Peripheral(lab)
    host.rssi = -75
    await host.start(interval=200)
    join = await lab.join(timeout=12, more=("--min-rssi", "-60")).start()
    await asyncio.sleep(4)
    host.rssi = -40
    await asyncio.sleep(0.25)
    host.rssi = -75
    expect(await join.outcome(), "error")


@case("rssi/unavailable", timeout=60)
async def _(lab):
    """127 is not near"""
    host = Peripheral(lab)
    host.rssi = 127
    await host.start()
    expect(await (await lab.join(timeout=8, more=("--min-rssi", "-60")).start()).outcome(), "error")


@case("rssi/strongest", timeout=75)
async def _(lab):
    """The nearest of three"""
    for name, value in (("far", -80), ("near", -40), ("middle", -60)):
        host = Peripheral(lab, named(name), name=name.upper())
        host.rssi = value
        await host.start()
    outcome = await (await lab.join(more=("--select", "strongest")).start()).outcome()
    assert outcome.kind == "handoff" and outcome.message["payload"]["roomCode"] == "near", outcome


@case("rssi/strongest-after-a-change", timeout=75)
async def _(lab):
    """Who is nearest changes while the window is open"""
    first, second = Peripheral(lab, named("first"), name="FIRST"), Peripheral(lab, named("second"), name="SECOND")
    first.rssi, second.rssi = -50, -70
    await first.start()
    await second.start()
    join = await lab.join(more=("--select", "strongest")).start()
    await asyncio.sleep(1.2)
    first.rssi, second.rssi = -80, -45
    outcome = await join.outcome()
    assert outcome.kind == "handoff", outcome
    lab.note(f"joined {outcome.message['payload']['roomCode']}")


@case("rssi/radio-that-reports-once", timeout=75)
async def _(lab):
    """A controller that drops duplicates reports each advertiser once a scan: the last reading holds"""
    lab.adapter("hci1").controller.drop_duplicates = True
    host = Peripheral(lab)
    host.rssi = -55
    await host.start()
    expect(await (await lab.join(more=("--min-rssi", "-60")).start()).outcome(), "handoff")
