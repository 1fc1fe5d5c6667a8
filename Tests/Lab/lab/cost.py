# SPDX-License-Identifier: MIT
"""What a handoff costs: our client and host beside what people use today, interleaved in one boot, as a table.

Everything here is emulated: the seconds are no radio's and no processor's, only the ratios within one run count.
"""
import asyncio
import dataclasses
import itertools
import os
import resource
import time

from . import envelope, measure, trace
from .measurement import ALONE, HERE, Measurement, python
from .peers.central import Central
from .peers.peripheral import Peripheral, answers
from .tables import Table

PROXY = "/run/lab-proxy"
PROXIED = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={PROXY}"}
COUNTED = 5  # runs in which D-Bus messages are counted
SCAN_ENABLE = {0x200C, 0x2042}  # LE Set Scan Enable, LE Set Extended Scan Enable


class Watch:
    """Looks at the traffic of one adapter as it passes, and at a process where that matters."""

    def __init__(self, recorder, adapter):
        self.recorder, self.adapter = recorder, adapter
        self.pid = None
        self.reset()
        self.original = recorder.record
        recorder.record = self.record

    def reset(self):
        self.marks, self.snapshots = {}, {}
        self.commands = self.pdus = self.own = 0
        self.handles = set()
        self.gaps, self._written = [], None
        self._reassembly = trace.Reassembly()
        self.open = True

    def mark(self, name):
        if name not in self.marks:
            self.marks[name] = time.monotonic()
            if self.pid is not None:
                try:
                    self.snapshots[name] = (
                        measure.processor(self.pid), measure.memory(self.pid)["VmHWM"], measure.switches(self.pid))
                except (OSError, KeyError):
                    pass  # it has ended

    def record(self, name, packet, to_host):
        self.original(name, packet, to_host)
        if name != self.adapter or not self.open:
            return
        if packet[0] == 1:
            opcode = int.from_bytes(packet[1:3], "little")
            self.commands += 1
            if opcode in SCAN_ENABLE and packet[4] == 1:
                self.mark("scan")
        elif packet[0] == 4 and packet[1] == 0x05:
            self.mark("disconnected")
        elif packet[0] == 4 and packet[1] == 0x3E and packet[3] in (0x01, 0x0A) and packet[4] == 0:
            self.mark("connected")
        pdu = self._reassembly.take(time.monotonic(), name, to_host, packet)
        if pdu is None:
            return
        self.pdus += 1
        if pdu.code in (trace.WRITE_REQUEST, trace.NOTIFICATION) and pdu.handle in self.handles:
            self.own += 2 if pdu.code == trace.WRITE_REQUEST else 1  # a write has its response
        if pdu.code == trace.WRITE_REQUEST and not to_host and pdu.handle in self.handles:
            self.mark("subscribing" if len(pdu.data) == 5 else "written")
        if pdu.code == trace.NOTIFICATION and to_host:
            self.mark("notification")
        # A host's side.
        if pdu.code == trace.WRITE_REQUEST and to_host and len(pdu.data) > 20:
            self._written = time.monotonic()
        if pdu.code in (trace.NOTIFICATION, trace.MULTIPLE_NOTIFICATION) and not to_host and self._written is not None:
            self.gaps.append(time.monotonic() - self._written)
            self._written = None


@dataclasses.dataclass(frozen=True)
class Message:
    """A line of the proxy's log."""

    direction: str
    kind: str
    member: str
    about: str
    serial: str
    answers: str

    def __str__(self):
        return " ".join(each for each in (self.direction, self.kind, self.member, self.about) if each != "-")

    @property
    def purpose(self):
        """What a host has it for, where that is not what it answers."""
        if "Advertis" in self.member or self.about.startswith("org.bluez.LEAdvertis"):
            return "advertising"
        if self.member in ("AcquireNotify", "StartNotify", "StopNotify", "ReadValue", "WriteValue", "Confirm"):
            return "exchange"
        if self.about == "org.bluez.GattCharacteristic1" and self.direction == "sent":
            return "exchange"
        return "objects"  # bluetoothd's own, which come and go and change


def by_purpose(messages):
    """{purpose: number}; an answer belongs to what it answers."""
    asked, found = {}, {"exchange": 0, "advertising": 0, "objects": 0}
    for each in messages:
        if each.kind == "call":
            asked[each.direction, each.serial] = each.purpose
        other = "received" if each.direction == "sent" else "sent"
        found[asked.get((other, each.answers), each.purpose)] += 1
    return found


class Cost(Measurement):
    CLIENTS = ("nearby", "bleak", "SimpleBLE")
    HOSTS = ("nearby", "dbus-fast", "bless", "bluez-peripheral")
    # libdbus and next to nothing else (Benchmarks/C/bare_*.c), where there is a compiler: the least that it can cost; a
    # host's without and with following bluetoothd and its centrals.
    CLIENT_FLOOR = ("C",)
    HOST_FLOOR = ("C", "C, following")

    def __init__(self, lab):
        super().__init__(lab)
        self.bare = os.environ.get("LAB_BARE")
        self.client_floor, self.host_floor = (self.CLIENT_FLOOR, self.HOST_FLOOR) if self.bare else ((), ())
        self.clients_tried, self.hosts_tried = self.CLIENTS + self.client_floor, self.HOSTS + self.host_floor

    def client(self, name):
        if name == "nearby":
            return [os.environ["LAB_NEARBY"], "join", "--app-id", envelope.APP, "--adapter", "hci1", "--json"]
        if name == "bleak":
            return python(ALONE, "client", name, "hci1")
        if name in self.CLIENT_FLOOR:
            return [os.path.join(self.bare, "client"), "hci1"]
        return python(
            os.path.join(HERE, "peers", "simpleble_join.py"), self.lab.adapter("hci1").address, envelope.SERVICE,
            envelope.MESSAGE, envelope.join_request().decode())

    def host(self, name):
        if name == "nearby":
            more = [each for pair in envelope.PAYLOAD.items() for each in ("--payload", "=".join(pair))]
            return [os.environ["LAB_NEARBY"], "host", "--app-id", envelope.APP, "--adapter", "hci0", "--json", *more]
        if name in self.HOST_FLOOR:
            return [os.path.join(self.bare, "host"), "hci0", *(["follow"] if name == "C, following" else [])]
        return python(ALONE, "host", name, "hci0")

    async def proxy(self):
        """Starts what counts the messages of a program that is given `PROXIED`; also returns its log."""
        log = "/run/lab-proxy.log"
        if os.path.exists(PROXY):
            os.unlink(PROXY)
        process = await self.spawn(python(os.path.join(HERE, "bus_proxy.py"), PROXY, log))
        while not os.path.exists(PROXY):
            await asyncio.sleep(0.1)
        return process, log

    # Clients

    @staticmethod
    async def output(process):
        """All that it says, and when it first told the payload."""
        lines, told = [], None
        async for line in process.stdout:
            lines.append(line)
            if told is None and b"SWIFT42" in line:
                told = time.monotonic()
        return b"".join(lines), told

    async def one_client(self, watch, table, name, host, **environment):
        watch.reset()
        watch.handles = {host.message.handle, host.message.handle + 1}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        process = await self.spawn(self.client(name), **environment)
        watch.pid = process.pid
        (_, told), errors, _ = await asyncio.wait_for(
            asyncio.gather(self.output(process), process.stderr.read(), process.wait()), self.lab.seconds(90))
        ended = time.monotonic()
        watch.pid, watch.open = None, False
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0 or told is None:
            return self.failed(name, errors.decode(errors="replace").strip().splitlines()[-1:])
        marks, shots = watch.marks, watch.snapshots
        # One that ends as its link does may be gone when that is looked at.
        cpu, memory = None, None
        if "disconnected" in shots:
            cpu, memory = shots["disconnected"][0] - shots["scan"][0], shots["disconnected"][1] / 1024
        # The controller tells the start of the scan; what the process did before is its own start.
        table.add(
            name,
            connected=marks["connected"] - marks["scan"],
            notification=marks["notification"] - marks["scan"],
            told=(told - marks["notification"]) * 1000,
            disconnected=marks["disconnected"] - marks["scan"],
            whole=ended - began,
            cpu=cpu,
            whole_cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            memory=memory,
            switches=after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
            pdus=watch.pdus, own=watch.own, commands=watch.commands)

    async def clients(self, count):
        watch = Watch(self.lab.recorder, "hci1")
        cold, warm = Table(), Table()
        for number in range(count):
            for turn in range(len(self.clients_tried)):
                name = self.clients_tried[(number + turn) % len(self.clients_tried)]
                host = await Peripheral(self.lab, answers(envelope.handoff(), pause=0)).start()
                await self.one_client(watch, cold, name, host)
                await self.one_client(watch, warm, name, host)
                await self.lab.clean()
        rows = {
            "connected": ("scan → connected, s", "{:.2f}"),
            "notification": ("scan → notification, s", "{:.2f}"),
            "told": ("notification → the program tells the payload, ms", "{:.0f}"),
            "disconnected": ("scan → disconnected, s", "{:.2f}"),
            "whole": ("start → end of the process, s", "{:.2f}"),
            "cpu": ("CPU scan → disconnected, s", "{:.3f}"),
            "whole_cpu": ("CPU of the whole process, s", "{:.2f}"),
            "memory": ("most resident memory, MB", "{:.1f}"),
            "switches": ("context switches", "{:.0f}"),
            "pdus": ("ATT PDUs", "{:.0f}"),
            "own": ("… of which the application's", "{:.0f}"),
            "commands": ("HCI commands", "{:.0f}"),
        }
        cold.print("client, cold", self.clients_tried, rows)
        warm.print("client, BlueZ's cache warm", self.clients_tried, rows)
        for (title, table), name in itertools.product((("cold", cold), ("warm", warm)), ("nearby", *self.client_floor)):
            table.ratios(title, name, (
                ("notification", "scan → notification", "SimpleBLE", 1.05),
                ("notification", "scan → notification", "bleak", 0.67),
                ("cpu", "CPU scan → disconnected", "SimpleBLE", 0.3),
                ("cpu", "CPU scan → disconnected", "bleak", 0.3),
                ("memory", "most resident memory", "SimpleBLE", 0.6),
                ("switches", "context switches", "bleak", 1.0)))
        await self.count_client_messages(watch, min(count, COUNTED))

    async def count_client_messages(self, watch, count):
        proxy, log = await self.proxy()
        table, calls = Table(), {}
        for _ in range(count):
            for name in self.clients_tried:
                host = await Peripheral(self.lab, answers(envelope.handoff(), pause=0)).start()
                start = os.path.getsize(log)
                await self.one_client(watch, Table(), name, host, **PROXIED)
                found = self.lines(log, start)
                calls[name] = [each.member for each in found if (each.direction, each.kind) == ("sent", "call")]
                table.add(
                    name, sent=sum(each.direction == "sent" for each in found), calls=len(calls[name]),
                    received=sum(each.direction == "received" for each in found),
                    connections=sum(each.direction == "connection" for each in found))
                await self.lab.clean()
        proxy.kill()
        table.print("client, D-Bus, cold", self.clients_tried, {
            "sent": ("messages sent", "{:.0f}"), "calls": ("… of which calls", "{:.0f}"),
            "received": ("messages received", "{:.0f}"), "connections": ("connections", "{:.0f}")})
        for name in self.clients_tried:
            print(f"{name} calls: {', '.join(calls[name])}")

    @staticmethod
    def lines(log, start):
        with open(log, encoding="utf-8") as file:
            file.seek(start)
            return [Message(*line.split()) for line in file]

    # Hosts

    async def one_guest(self):
        phone = Central.android(self.lab)
        try:
            await phone.join()
        finally:
            await phone.close()
            self.lab.peers.remove(phone)
        # To advertise again belongs to a handoff's cost.
        await asyncio.sleep(1.0)

    async def hosts(self, count, block=5):
        watch = Watch(self.lab.recorder, "hci0")
        table = Table()
        for number in range(-(-count // block)):
            for turn in range(len(self.hosts_tried)):
                name = self.hosts_tried[(number + turn) % len(self.hosts_tried)]
                process = await self.spawn_host(self.host(name))
                try:
                    table.add(name, idle=measure.memory(process.pid)["VmRSS"] / 1024)
                    for guest in range(min(block, count - number * block)):
                        await self.one_measured_guest(watch, table, name, process.pid, is_first=guest == 0)
                except Exception as error:  # a library's host that fails is a finding, not the end of the table
                    self.failed(name, repr(error))
                process.kill()
                await process.wait()
                await self.lab.clean()
        await self.count_host_messages(table, min(count, COUNTED))
        table.print("host", self.hosts_tried, {
            "gap": ("ATT write received → notification sent, ms", "{:.1f}"),
            "cpu": ("CPU a handoff, ms", "{:.1f}"),
            "first": ("CPU of a process's first handoff, ms", "{:.1f}"),
            "switches": ("context switches a handoff", "{:.0f}"),
            "pdus": ("ATT PDUs a handoff", "{:.0f}"),
            "commands": ("HCI commands a handoff", "{:.0f}"),
            "idle": ("idle resident memory, MB", "{:.1f}"),
            "start": ("D-Bus messages at start", "{:.0f}"),
            "exchange": ("D-Bus messages a handoff: the exchange", "{:.0f}"),
            "advertising": ("… to advertise again", "{:.0f}"),
            "objects": ("… about bluetoothd's objects", "{:.0f}")})
        for name in ("nearby", *self.host_floor):
            table.ratios("host", name, (
                ("gap", "ATT write received → notification sent", "dbus-fast", 0.6),
                ("cpu", "CPU a handoff", "dbus-fast", 0.3)))

    async def one_measured_guest(self, watch, table, name, pid, is_first):
        watch.reset()
        cpu, switches = measure.processor(pid), measure.switches(pid)
        await self.one_guest()
        cpu, switches = (measure.processor(pid) - cpu) * 1000, measure.switches(pid) - switches
        if not watch.gaps:
            return self.failed(name, "no notification was seen")
        table.add(name, gap=watch.gaps[0] * 1000, pdus=watch.pdus, commands=watch.commands)
        # An emulated processor translates code when it first comes to it.
        table.add(name, **({"first": cpu} if is_first else {"cpu": cpu, "switches": switches}))

    async def count_host_messages(self, table, count):
        proxy, log = await self.proxy()
        for name in self.hosts_tried:
            start = os.path.getsize(log)
            process = await self.spawn_host(self.host(name), **PROXIED)
            found = self.lines(log, start)
            table.add(name, start=sum(each.direction != "connection" for each in found))
            print(f"{name} at start: {', '.join(map(str, found))}")
            try:
                # The first guest may show the host what the controller can do.
                await self.one_guest()
                for _ in range(count):
                    start = os.path.getsize(log)
                    await self.one_guest()
                    found = self.lines(log, start)
                    table.add(name, **by_purpose(found))
                print(f"{name} a handoff: {', '.join(map(str, found))}")
            except Exception as error:
                self.failed(name, repr(error))
            process.kill()
            await process.wait()
            await self.lab.clean()
        proxy.kill()


async def run(lab, count, only=()):
    """How many measurements failed."""
    cost = Cost(lab)
    for name, measured in (("clients", cost.clients), ("hosts", cost.hosts)):
        if not only or name in only:
            await measured(count)
    return cost.failures
