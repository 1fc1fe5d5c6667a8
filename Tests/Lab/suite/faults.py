# SPDX-License-Identifier: MIT
"""The stack fails under us, at each step of an exchange, in both roles.

The outcome, each time and within 15 s of the stack's return: a completed handoff or a typed error. Never a hang,
never a wrong payload, never a silent end.
"""
import asyncio

from lab import envelope
from lab.cases import case
from lab.peers.central import Central
from lab.peers.peripheral import Peripheral, answers, says_nothing

from .host_centrals import expect_handoff

#: Seconds after the stack's return in which the host must serve again, or the join must have ended.
RECOVERY = 15


async def bluetoothd(lab, adapter):
    await lab.restart_bluetoothd()


async def power(lab, adapter):
    await lab.cycle_power(adapter)


async def adapter(lab, adapter):
    await lab.replug(adapter)


async def dropped(lab, adapter):
    """By the peer, politely: 0x13."""
    lab.medium.drop([adapter], 0x13)


async def timeout(lab, adapter):
    """Supervision time-out: both sides hear 0x08."""
    lab.medium.drop([adapter])


async def bus(lab, adapter):
    await lab.restart_bus()


FAULTS = {
    "bluetoothd": bluetoothd,
    "power": power,
    "adapter": adapter,
    "dropped": dropped,
    "timeout": timeout,
    "bus": bus,
}
#: On every BlueZ; elsewhere all of them.
CORE = {
    ("bluetoothd", "advertising"),
    ("bluetoothd", "written"),
    ("power", "subscribed"),
    ("adapter", "advertising"),
    ("timeout", "written"),
    ("bus", "advertising"),
}
STEPS = ("advertising", *Central.STEPS)


async def served_within(lab, seconds):
    """A phone gets its handoff; it tries again until the time is up, as its user would."""
    deadline = asyncio.get_running_loop().time() + lab.seconds(seconds)
    while True:
        phone = Central.android(lab)
        left = deadline - asyncio.get_running_loop().time()
        try:
            expect_handoff(await asyncio.wait_for(phone.join(), max(left, 1)))
            return
        except Exception as error:  # a link or a search that came too early; what counts is the deadline
            if asyncio.get_running_loop().time() >= deadline:
                raise AssertionError(f"does not serve again within {seconds} s ({error!r})") from error
        finally:
            await phone.close()


for fault in FAULTS:
    for step in STEPS:
        if step == "advertising" and fault in ("dropped", "timeout"):
            continue  # there is no link yet

        @case(f"fault/host/{fault}-{step}", core=(fault, step) in CORE, timeout=120)
        async def _(lab, fault=fault, step=step):
            """The host serves again by itself"""
            host = await lab.host().start()
            if step != "advertising":
                await Central.iphone(lab).go_to(step)
            await FAULTS[fault](lab, "hci0")
            await served_within(lab, RECOVERY)
            assert host.running, "nearby host has ended"


async def ended_within(lab, join, seconds):
    """The join's outcome: the right handoff, or an error with a code. (Nearby's own checks see to the rest.)"""
    outcome = await join.outcome(seconds)
    if outcome.kind == "handoff":
        assert outcome.message == envelope.decode(envelope.handoff()), f"wrong payload: {outcome.message}"
    else:
        assert outcome.code, f"an error without a code: {outcome}"
    lab.note(f"{outcome.kind} {outcome.code or ''}".strip())


for fault in FAULTS:
    for step in ("scanning", *Peripheral.STEPS):
        if step == "scanning" and fault in ("dropped", "timeout"):
            continue

        @case(f"fault/join/{fault}-{step}", core=(fault, step.replace("scanning", "advertising")) in CORE, timeout=150)
        async def _(lab, fault=fault, step=step):
            """The join ends with the handoff or a typed error"""
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
                await asyncio.sleep(2)
            else:
                await host.wait(step, timeout=30)
            await FAULTS[fault](lab, "hci1")
            withheld.set()
            if step == "scanning":
                await host.start()
            # Its own time limit is far away: it has to go on by itself, or to say soon that it cannot.
            await ended_within(lab, join, RECOVERY)


@case("fault/host/killed", core=True, timeout=120)
async def _(lab):
    """SIGKILL of nearby host while a phone is subscribed; the next start copes with what stays behind"""
    first = await lab.host().start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    await first.kill()
    await lab.host().start()
    await served_within(lab, RECOVERY)


@case("fault/join/killed", core=True, timeout=120)
async def _(lab):
    """SIGKILL of nearby join while it waits for the answer: BlueZ keeps the link; the next join copes"""
    silent = Peripheral(lab, says_nothing)
    await silent.start()
    first = await lab.join().start()
    await silent.wait("written")
    await first.kill()
    silent.behave = answers(envelope.handoff())
    outcome = await (await lab.join().start()).outcome()
    assert outcome.kind == "handoff", outcome


@case("fault/host/no-adapter-at-start", timeout=90)
async def _(lab):
    """No adapter when it starts, one later (hot plug)"""
    lab.adapter("hci0").unplug()
    host = lab.host(more=("--wait",))
    await host.nearby.start()
    await asyncio.sleep(2)
    await lab.adapters[0].plug()
    await lab.bluez.wait_powered(["hci0"], lab.seconds(30))
    await served_within(lab, RECOVERY)


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
