# SPDX-License-Identifier: MIT
"""`nearby bridge` on the real stack: a client of its protocol as an Android emulator is one (Tests/Python), which shares no
code with ours, and our own `--radio bridge:`."""
import asyncio
import os
import statistics
import sys

import bridge_client

from lab import envelope, trace
from lab.bluez import ADAPTER
from lab.cases import case
from lab.nearby import Nearby, Outcome
from lab.peers.central import Central
from lab.peers.peripheral import Peripheral, answers

from .host_centrals import expect_handoff

# One guest, one loopback: any free port.
ANY = "127.0.0.1:0"


async def bridging(lab, adapter):
    """The bridge on one adapter; where it listens."""
    bridge = await Nearby(lab, "bridge", "--listen", ANY, "--adapter", adapter).start()
    return (await bridge.event("bridging"))["listen"]


class Emulator:
    """A process of bridge_client.py."""

    def __init__(self, lab, address, *words):
        self.lab = lab
        host, port = address.rsplit(":", 1)
        self.arguments = [
            sys.executable, bridge_client.__file__, "--host", host, "--port", port, "--disorder", "20",
            "--timeout", str(lab.seconds(60)), *words, "--app-id", envelope.APP]
        self.lines = []
        self.errors = b""

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.lab.at_end(self.kill)
        self.lab.evidence.append(self)
        self.name = "emulator"
        return self

    async def line(self):
        line = await asyncio.wait_for(self.process.stdout.readline(), self.lab.seconds(60))
        self.lines.append(line.decode().strip())
        return self.lines[-1]

    async def ended(self):
        rest, self.errors = await asyncio.wait_for(self.process.communicate(), self.lab.seconds(60))
        self.lines += rest.decode().split("\n")
        assert self.process.returncode == 0, f"{self.process.returncode}: {self.errors.decode()[-300:]}"

    async def kill(self):
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def record(self):
        return "\n".join([" ".join(self.arguments), *self.lines, "--- stderr", self.errors.decode(errors="replace")])


@case("bridge/emulator-joins", core=True, timeout=120)
async def _(lab):
    """An Android-style client of the bridge joins our host"""
    host = await lab.host().start()
    emulator = await Emulator(lab, await bridging(lab, "hci1"), "join").start()
    answer = envelope.decode((await emulator.line()).encode())
    expect_handoff(answer)
    await emulator.ended()
    await host.delivered()


@case("bridge/emulator-hosts", core=True, timeout=150)
async def _(lab):
    """Our client joins an Android-style host of the bridge, twice"""
    words = [word for key, value in envelope.PAYLOAD.items() for word in ("--payload", f"{key}={value}")]
    emulator = await Emulator(lab, await bridging(lab, "hci0"), "host", "--joins", "2", *words).start()
    assert await emulator.line() == "ready"
    for _ in range(2):
        outcome = await (await lab.join().start()).outcome()
        assert outcome.kind == "handoff" and outcome.message["payload"] == envelope.PAYLOAD, outcome
        assert await emulator.line() == "joined"
    await emulator.ended()


def through(address):
    return ["--radio", f"bridge:{address}"]


async def joined(lab, *options):
    """A join's phases, in milliseconds."""
    limit = f"{lab.seconds(30):.0f}s"
    join = await Nearby(lab, "join", "--app-id", envelope.APP, "--timeout", limit, *options).start()
    status = await join.exit(60)
    found = [event for event in join.events if event.get("event") == "handoff"]
    assert status == 0 and found, Outcome("error", code=join.tail(), status=status)
    return found[0]["timing"]


@case("bridge/both-ends", timeout=150)
async def _(lab):
    """nearby host and nearby join, each through a bridge of its own, sealed and authenticated"""
    first, second = await bridging(lab, "hci0"), await bridging(lab, "hci1")
    words = ["--app-id", envelope.APP, "--passcode", "48291357"]
    host = await Nearby(lab, "host", *words, "--payload", "a=b", *through(first)).start()
    await host.event("serving")
    join = await Nearby(lab, "join", *words, *through(second)).start()
    assert await join.exit(60) == 0, join.tail()
    handoff = await join.event("handoff")
    assert handoff["security"] == "authenticated" and handoff["payload"] == {"a": "b"}, handoff
    await host.event("delivered")


@case("bridge/both-roles-on-one-adapter", bugs=("bluez/bluez#584",), timeout=150)
async def _(lab):
    """With a phone at our host, our client joins another host from the same adapter and process, and ours serves on.
    bluetoothd does not say that the adapter can be both, so advertising pauses for the attempt (rule 24)"""
    roles = await lab.bluez.get("/org/bluez/hci0", ADAPTER, "Roles")
    assert "central-peripheral" not in roles, roles
    address = await bridging(lab, "hci0")
    host = await Nearby(lab, "host", "--app-id", envelope.APP, "--payload", "a=b", *through(address)).start()
    await host.event("serving")
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    other = await Peripheral(lab, answers(envelope.handoff(envelope.OTHER_APP))).start()
    limit = f"{lab.seconds(30):.0f}s"
    join = await Nearby(lab, "join", "--app-id", envelope.OTHER_APP, "--timeout", limit, *through(address)).start()
    assert await join.exit(40) == 0, join.tail()
    assert (await join.event("handoff"))["payload"] == envelope.PAYLOAD
    # Our own pause, or the kernel's where bluetoothd answers before it has removed the advertisement.
    attempts = trace.advertises_at_connection(lab.recorder.packets, "hci0")
    assert attempts and not any(attempts), f"whether it advertised as it tried to connect: {attempts}"
    await phone.write()
    answer = await phone.answer()
    assert answer["type"] == "handoff" and answer["payload"] == {"a": "b"}, answer
    other.vanish()  # it advertises the kit's service, too
    answer = await Central.android(lab).join()
    assert answer["type"] == "handoff" and answer["payload"] == {"a": "b"}, answer


@case("bridge/cost", timeout=400)
async def _(lab):
    """A handoff through the bridge costs at most 1.2 times the same handoff without it, in turn"""
    await lab.host().start()
    ways = {"without": ["--adapter", "hci1"], "through": through(await bridging(lab, "hci1"))}
    times = {way: [] for way in ways}
    for _ in range(10):
        for way, options in ways.items():
            times[way].append((await joined(lab, *options))["answered"])
    # Whatever else the machine does only adds: the lower quartile shows best what the handoff itself takes.
    low = {way: statistics.quantiles(values, n=4)[0] for way, values in times.items()}
    middle = {way: statistics.median(values) for way, values in times.items()}
    ratio = low["through"] / low["without"]
    lab.note(f"lower quartile {low['through']:.0f} ms through, {low['without']:.0f} ms without: {ratio:.2f}; "
             f"medians {middle['through']:.0f} and {middle['without']:.0f} ms; n=10")
    assert ratio <= 1.2, ratio
