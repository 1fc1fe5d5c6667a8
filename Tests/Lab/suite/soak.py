# SPDX-License-Identifier: MIT
"""Many handoffs in one boot (`scripts/lab.sh --soak N`, 30 unless it says otherwise): afterwards everything is back to
where it was."""
import asyncio
import os

from lab import measure
from lab.bluez import keeps_centrals
from lab.cases import case
from lab.peers.central import Central

from .host_centrals import expect_handoff

HANDOFFS = int(os.environ.get("LAB_SOAK") or 30)
#: Until buffers and caches have their size.
WARM_UP = 4
#: kB that the host's resident memory may be larger in the end: the allocator's own play (one page a handoff would be
#: 2000 kB for 500).
PLAY = 1024
#: bluetoothd keeps a device that it no longer hears for 30 s.
FORGOTTEN = 45


async def _state(lab, process):
    bus = await lab.bluez.bus()
    return {
        "rss": measure.memory(process.pid)["VmRSS"],
        "fds": measure.descriptors(process.pid),
        "threads": measure.threads(process.pid),
        "rules": await measure.match_rules(lab.bluez, {bus.unique_name}),
        "devices": len(await lab.bluez.devices()),
        "instances": await lab.bluez.active_instances("hci0"),
    }


async def _handoff(lab, number):
    if number % 3 == 2:
        outcome = await (await lab.join().start()).outcome()
        assert outcome.kind == "handoff", f"handoff {number}: {outcome}"
        return
    phone = (Central.iphone, Central.android)[number % 2](lab)
    try:
        expect_handoff(await phone.join())
    finally:
        await phone.close()
        lab.peers.remove(phone)


@case("soak/handoffs", timeout=120 + 25 * HANDOFFS)
async def _(lab):
    """One host, many clients of three kinds, one after the other"""
    host = await lab.host().start()
    process = host.nearby.process
    for number in range(WARM_UP):
        await _handoff(lab, number)
    await host.delivered(count=WARM_UP)
    await lab.bluez.forget_devices()
    before = await _state(lab, process)
    for number in range(HANDOFFS):
        await _handoff(lab, number)
    deadline = asyncio.get_running_loop().time() + lab.seconds(FORGOTTEN)
    while True:
        await asyncio.sleep(2)
        after = await _state(lab, process)
        # Fewer is as good: the thread pool shrinks when there is less to do.
        not_back = {each for each in before if each != "rss" and after[each] > before[each]}
        if after["instances"] != before["instances"]:
            not_back.add("instances")
        if not not_back or asyncio.get_running_loop().time() > deadline:
            break
    lab.note(f"{HANDOFFS} handoffs; " + ", ".join(f"{each} {before[each]} → {after[each]}" for each in before))
    expected = {"devices"} if keeps_centrals(lab.bluez_version) else set()
    assert not_back == expected, f"not back: {before} → {after}"
    assert after["rss"] - before["rss"] <= PLAY, f"memory grew: {before} → {after}"
    await host.delivered(count=WARM_UP + HANDOFFS)
    delivered = [each for each in host.nearby.events if each.get("event") == "delivered"]
    assert len(delivered) == WARM_UP + HANDOFFS, f"{len(delivered)} delivered"
