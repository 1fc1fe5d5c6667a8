# SPDX-License-Identifier: MIT
"""What sealing costs on the air: the extended profile beside the basic one, and 64 KiB beside raw notifications of the
same size, interleaved in one boot.

Everything here is emulated: the seconds are no radio's and no processor's, only ratios within one run and counts mean
something.
"""
import asyncio
import json
import os
import statistics
import tempfile
import time

from bumble.gatt import GATT_CLIENT_CHARACTERISTIC_CONFIGURATION_DESCRIPTOR

from . import envelope, trace
from .measurement import ALONE, Measurement, python
from .peers.central import Central
from .peers.port import PortCentral
from .tables import Table, ratio_line

PROFILES = ("basic", "extended")
HANDOFF, LARGEST = 400, 65_536  # bytes of an envelope
MTU = 517


def payload_file(size):
    """A payload whose handoff is an envelope of that size."""
    note = "x" * (size - len(envelope.handoff(payload={"note": ""})))
    with tempfile.NamedTemporaryFile("wb", suffix=".json", delete=False) as file:
        file.write(envelope.encode(note=note))
    return file.name


class Exchange:
    """One exchange in a trace, as the adapter of one side saw it. `attributes`: {handle: what it is}."""

    def __init__(self, packets, adapter, attributes):
        self.connected = next(
            (moment for moment, change in trace.link_changes(packets, adapter) if change == "connected"), None)
        self.all = self.trips = 0
        self.own, self.values = [], []
        asked = None
        for pdu in trace.pdus(packets, adapter):
            self.all += 1
            if not pdu.to_host and pdu.code in (*trace.READ_REQUESTS, trace.WRITE_REQUEST) and pdu.handle in attributes:
                asked = attributes[pdu.handle]
                self.own.append(("read " if pdu.code in trace.READ_REQUESTS else "write ") + asked)
                self.trips += 1
            elif asked and pdu.to_host and pdu.code in (*trace.READ_RESPONSES, trace.WRITE_RESPONSE, trace.ERROR):
                self.own.append("response")
                asked = None
            elif pdu.to_host:
                for handle, value in pdu.notified():
                    if handle in attributes:
                        self.own.append(f"notification of {attributes[handle]}")
                        self.values.append((pdu.time, value))
        if self.connected is None or not self.values:
            raise ValueError("the trace has no exchange")

    @property
    def answered(self):
        """Seconds from the connection to the last of the answer."""
        return self.values[-1][0] - self.connected

    @property
    def transfer(self):
        """Seconds from the first notification to the last."""
        return self.values[-1][0] - self.values[0][0]


class Speed(Measurement):
    def nearby_host(self, file):
        return [os.environ["LAB_NEARBY"], "host", "--app-id", envelope.APP, "--session-id", envelope.SESSION,
                "--adapter", "hci0", "--json", "--payload-file", file]

    async def stop(self, process):
        process.kill()
        await process.communicate()
        await self.lab.clean()

    async def attributes(self):
        """{handle: what it is} of the host that serves now, as a phone discovers them."""
        phone = PortCentral.phone(self.lab, MTU)
        await phone.connect()
        await phone.discover()
        found = {}
        for name in ("message", "hello", "channel"):
            characteristic = getattr(phone, name)
            found[characteristic.handle] = name
            if name != "hello":
                configuration = characteristic.get_descriptor(GATT_CLIENT_CHARACTERISTIC_CONFIGURATION_DESCRIPTOR)
                found[configuration.handle] = f"{name}'s subscription"
        await phone.leave()
        await self.away(phone)
        return found

    async def away(self, phone):
        await phone.close()
        self.lab.peers.remove(phone)
        await asyncio.sleep(1)

    # Basic and extended, our client in front of our host

    async def join(self, profile, attributes, table, temperature):
        self.lab.recorder.clear()
        command = [os.environ["LAB_NEARBY"], "join", "--app-id", envelope.APP, "--adapter", "hci1", "--json",
                   "--profile", profile]
        process = await self.spawn(command)
        out, errors = await asyncio.wait_for(process.communicate(), self.lab.seconds(90))
        results = [json.loads(line) for line in out.splitlines() if b'"handoff"' in line]
        if process.returncode != 0 or not results:
            last = errors.decode(errors="replace").strip().splitlines()[-1:]
            return self.failed(profile, f"exit status {process.returncode}: {last}")
        try:
            exchange = Exchange(self.lab.recorder.packets, "hci1", attributes)
        except ValueError as error:
            return self.failed(profile, error)
        timing = results[-1]["timing"]
        table.add(
            f"{profile}, {temperature}", answered=exchange.answered,
            told=(timing["answered"] - timing["connected"]) / 1000,
            asked=(timing["answered"] - timing["resolved"]) / 1000,
            pdus=exchange.all, own=len(exchange.own), trips=exchange.trips)
        return exchange

    async def profiles(self, count):
        file = payload_file(HANDOFF)
        table, kinds = Table(), {}
        pairs = {"cold": [], "warm": []}
        process = await self.spawn_host(self.nearby_host(file))
        attributes = await self.attributes()
        for number in range(count):
            found = {}
            for turn in range(len(PROFILES)):
                profile = PROFILES[(number + turn) % len(PROFILES)]
                await self.lab.bluez.forget_devices()
                for temperature in ("cold", "warm"):
                    exchange = await self.join(profile, attributes, table, temperature)
                    if exchange is not None:
                        found[profile, temperature] = exchange
                        kinds.setdefault(profile, set()).add(", ".join(exchange.own))
            for temperature, values in pairs.items():
                if all((profile, temperature) in found for profile in PROFILES):
                    values.append(tuple(found[profile, temperature].answered for profile in PROFILES))
        await self.stop(process)
        os.unlink(file)
        table.print(
            f"an envelope of {HANDOFF} bytes at MTU {MTU}, nearby join and nearby host",
            [f"{profile}, {temperature}" for temperature in pairs for profile in PROFILES],
            {
                "answered": ("connected → handoff, s (trace)", "{:.3f}"),
                "told": ("the same, as nearby join tells it", "{:.3f}"),
                "asked": ("services known → handoff, s (nearby join)", "{:.3f}"),
                "pdus": ("ATT PDUs", "{:.0f}"),
                "own": ("… of which the application's", "{:.0f}"),
                "trips": ("… round trips among them", "{:.0f}"),
            })
        for profile, found in kinds.items():
            for each in sorted(found):
                print(f"{profile}: {each}")
        trips = [
            statistics.median(table.rows["trips"][f"{profile}, {temperature}"])
            for profile in PROFILES for temperature in pairs
        ]
        print(f"round trips more, extended than basic: {trips[2] - trips[0]:.0f} cold, {trips[3] - trips[1]:.0f} warm")
        for temperature, values in pairs.items():
            print(ratio_line(
                f"connected → handoff, {temperature}, extended to basic", [each[1] for each in values],
                [each[0] for each in values], 1.25), flush=True)

    # 64 KiB, a Bumble central in front of our host and of a bare one

    async def sealed(self):
        phone = PortCentral.phone(self.lab, MTU)
        try:
            await phone.search().run(120)
            return self.transfer(phone, phone.channel.handle)
        finally:
            await self.away(phone)

    async def raw(self):
        phone = Central.android(self.lab, MTU)
        try:
            await phone.go_to("subscribed")
            await phone.write()
            size = 0
            while size < LARGEST:
                size += len(await asyncio.wait_for(phone.received.get(), self.lab.seconds(30)))
            await phone.leave()
            return self.transfer(phone, phone.message.handle)
        finally:
            await self.away(phone)

    def transfer(self, phone, handle):
        packets = self.lab.recorder.packets
        exchange = Exchange(packets, phone.controller.name, {handle: "value"})
        written = [
            pdu.time for pdu in trace.pdus(packets, phone.controller.name)
            if not pdu.to_host and pdu.code == trace.WRITE_REQUEST and pdu.handle == handle
        ]
        return exchange, exchange.values[-1][0] - written[0]

    async def throughput(self, count, block=5):
        file = payload_file(LARGEST)
        servers = {
            "nearby host": (self.nearby_host(file), self.sealed),
            "raw": (python(ALONE, "host", "raw", "hci0"), self.raw),
        }
        table = Table()
        rounds = {name: [] for name in servers}
        for number in range(-(-count // block)):
            for turn in range(len(servers)):
                name = list(servers)[(number + turn) % len(servers)]
                command, run = servers[name]
                process = await self.spawn_host(command)
                try:
                    for _ in range(min(block, count - number * block)):
                        self.lab.recorder.clear()
                        exchange, whole = await run()
                        rounds[name].append(LARGEST / exchange.transfer)
                        table.add(
                            name, rate=LARGEST / exchange.transfer / 1024, whole=whole,
                            notifications=len(exchange.values), bytes=sum(len(value) for _, value in exchange.values))
                except Exception as error:  # the other one's figures still count
                    self.failed(name, repr(error))
                await self.stop(process)
        os.unlink(file)
        table.print(
            f"64 KiB at MTU {MTU} to a Bumble central", list(servers),
            {
                "rate": ("first → last notification, KiB/s of payload", "{:.1f}"),
                "whole": ("request written → last notification, s", "{:.2f}"),
                "notifications": ("notifications", "{:.0f}"),
                "bytes": ("… bytes in them", "{:.0f}"),
            })
        print(ratio_line("64 KiB, throughput, ours to raw", *rounds.values(), 0.8, least=True), flush=True)


async def run(lab, count, only=()):
    began = time.monotonic()
    speed = Speed(lab)
    for name, measured in (("profiles", speed.profiles), ("throughput", speed.throughput)):
        if not only or name in only:
            await measured(count)
    print(f"took {(time.monotonic() - began) / 60:.0f} min", flush=True)
    return speed.failures
