# SPDX-License-Identifier: MIT
"""Our host, joined by Linux clients over the same bluetoothd, hci1 to hci0."""
import asyncio
import os
import sys

from lab import envelope
from lab.cases import SUBJECTS, case
from lab.peers.bleak_client import BleakJoin
from lab.peers.central import Central
from lab.peers.peripheral import Peripheral

from .host_centrals import expect_handoff, expect_reject


@case("host/bleak", core=True, subjects=SUBJECTS)
async def _(lab):
    """bleak finds, subscribes, writes"""
    await lab.host().start()
    expect_handoff(await BleakJoin(lab).join())


@case("host/bleak-again", subjects=SUBJECTS)
async def _(lab):
    """Twice, the second time with bluetoothd's cache warm"""
    await lab.host().start()
    client = BleakJoin(lab)
    expect_handoff(await client.join())
    expect_handoff(await client.join())


@case("host/bleak-wrong-app", subjects=SUBJECTS)
async def _(lab):
    """Rejected with the request's app"""
    await lab.host().start()
    answer = await BleakJoin(lab).join(envelope.join_request(envelope.OTHER_APP))
    expect_reject(answer, "app_mismatch", envelope.OTHER_APP)


@case("host/simpleble", subjects=SUBJECTS, bugs=("bluez/bluez#1353",), timeout=90)
async def _(lab):
    """SimpleBLE (simplepyble), whose scan finds only what says that it is discoverable"""
    await lab.host().start()
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-S",
        os.path.join(os.path.dirname(__file__), "..", "lab", "peers", "simpleble_join.py"),
        lab.adapter("hci1").address,
        envelope.SERVICE,
        envelope.MESSAGE,
        envelope.join_request().decode(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    out, errors = await client.communicate()
    assert client.returncode == 0, errors.decode(errors="replace").strip().splitlines()[-1:]
    expect_handoff(envelope.decode(out))


@case("nearby/both-ends", core=True)
async def _(lab):
    """nearby join meets nearby host"""
    await lab.host().start()
    join = await lab.join().start()
    outcome = await join.outcome()
    assert outcome.kind == "handoff", outcome
    expect_handoff(outcome.message)


@case("nearby/hosts-and-joins", bugs=("bluez/bluez#584",), timeout=75)
async def _(lab):
    """One adapter that is a host with a phone connected, and joins another device meanwhile"""
    host = await lab.host().start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    other = await Peripheral(lab).start()
    outcome = await (await lab.join(adapter="hci0").start()).outcome()
    assert outcome.kind == "handoff" and other.requests, outcome
    expect_handoff(outcome.message)
    await phone.write()
    expect_handoff(await phone.answer())
    await phone.leave()
    expect_handoff(await Central.android(lab).join())
    assert host.running, "nearby host has ended"
