# SPDX-License-Identifier: MIT
"""What a handoff costs: our client and host beside what people use today, interleaved in one boot, as a table.

Everything here is emulated: the seconds are no radio's and no processor's, only the ratios within one run count.
"""
import asyncio
import collections
import os
import resource
import statistics
import sys
import time

from . import envelope, measure
from .peers.central import Central
from .peers.peripheral import Peripheral, answers

HERE = os.path.dirname(__file__)
ALONE = os.path.join(HERE, "peers", "alone.py")
PROXY = "/run/lab-proxy"
SCAN_ENABLE = {0x200C, 0x2042}  # LE Set Scan Enable, LE Set Extended Scan Enable
ATT = 4  # the L2CAP channel


def att(packet):
    """The ATT PDU of an ACL packet, or None. (Ours are never fragmented: the controllers take 251 bytes.)"""
    if packet[0] != 2 or len(packet) < 10 or int.from_bytes(packet[7:9], "little") != ATT:
        return None
    return packet[9:]


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
        pdu = att(packet)
        if pdu is None:
            return
        self.pdus += 1
        code = pdu[0]
        handle = int.from_bytes(pdu[1:3], "little")
        if code in (0x12, 0x1B) and handle in self.handles:
            self.own += 2 if code == 0x12 else 1  # a write has its response
        if code == 0x12 and not to_host and handle in self.handles:
            self.mark("subscribing" if len(pdu) == 5 else "written")
        if code == 0x1B and to_host:
            self.mark("notification")
        # A host's side.
        if code == 0x12 and to_host and len(pdu) > 20:
            self._written = time.monotonic()
        if code in (0x1B, 0x23) and not to_host and self._written is not None:
            self.gaps.append(time.monotonic() - self._written)
            self._written = None


class Table:
    def __init__(self):
        self.rows = collections.defaultdict(lambda: collections.defaultdict(list))

    def add(self, column, **values):
        for row, value in values.items():
            if value is not None:
                self.rows[row][column].append(value)

    def print(self, title, columns, rows):
        count = max((len(values) for row in self.rows.values() for values in row.values()), default=0)
        print(f"\n| {title}, n={count} | {' | '.join(columns)} |")
        print("|---" * (len(columns) + 1) + "|")
        for row, (label, form) in rows.items():
            cells = []
            for column in columns:
                values = self.rows[row][column]
                if not values:
                    cells.append("–")
                    continue
                middle, low, high = statistics.median(values), min(values), max(values)
                cells.append(form.format(middle) + ("" if low == high else f" ({form.format(low)}–{form.format(high)})"))
            print(f"| {label} | {' | '.join(cells)} |", flush=True)


def python(*arguments):
    return [sys.executable, "-S", *arguments]


class Cost:
    CLIENTS = ("nearby", "bleak", "SimpleBLE")
    HOSTS = ("nearby", "dbus-fast", "bless", "bluez-peripheral")

    def __init__(self, lab):
        self.lab = lab
        self.environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}

    def client(self, name):
        if name == "nearby":
            return [os.environ["LAB_NEARBY"], "join", "--app-id", envelope.APP, "--adapter", "hci1", "--json"]
        if name == "bleak":
            return python(ALONE, "client", name, "hci1")
        return python(
            os.path.join(HERE, "peers", "simpleble_join.py"), self.lab.adapter("hci1").address, envelope.SERVICE,
            envelope.MESSAGE, envelope.join_request().decode())

    def host(self, name):
        if name == "nearby":
            more = [each for pair in envelope.PAYLOAD.items() for each in ("--payload", "=".join(pair))]
            return [os.environ["LAB_NEARBY"], "host", "--app-id", envelope.APP, "--adapter", "hci0", "--json", *more]
        return python(ALONE, "host", name, "hci0")

    async def spawn(self, command, proxied=False):
        environment = dict(self.environment)
        if proxied:
            environment["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={PROXY}"
        return await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)

    async def proxy(self):
        log = "/run/lab-proxy.log"
        if os.path.exists(PROXY):
            os.unlink(PROXY)
        process = await self.spawn(python(os.path.join(HERE, "bus_proxy.py"), PROXY, log))
        while not os.path.exists(PROXY):
            await asyncio.sleep(0.1)
        return process, log

    # Clients

    async def one_client(self, watch, table, name, host, proxied=False):
        watch.reset()
        watch.handles = {host.message.handle, host.message.handle + 1}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        process = await self.spawn(self.client(name), proxied)
        watch.pid = process.pid
        out, errors = await asyncio.wait_for(process.communicate(), self.lab.seconds(90))
        ended = time.monotonic()
        watch.pid, watch.open = None, False
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0 or b"SWIFT42" not in out:
            print(f"lab: {name} failed: {errors.decode(errors='replace').strip().splitlines()[-1:]}", flush=True)
            return
        marks, shots = watch.marks, watch.snapshots
        if "disconnected" not in marks or "disconnected" not in shots:
            return
        # The controller tells the start of the scan; what the process did before is its own start.
        table.add(
            name,
            connected=marks["connected"] - marks["scan"],
            notification=marks["notification"] - marks["scan"],
            disconnected=marks["disconnected"] - marks["scan"],
            whole=ended - began,
            cpu=shots["disconnected"][0] - shots["scan"][0],
            whole_cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            memory=shots["disconnected"][1] / 1024,
            switches=after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
            pdus=watch.pdus, own=watch.own, commands=watch.commands)

    async def clients(self, count):
        watch = Watch(self.lab.recorder, "hci1")
        cold, warm = Table(), Table()
        for number in range(count):
            for turn in range(len(self.CLIENTS)):
                name = self.CLIENTS[(number + turn) % len(self.CLIENTS)]
                host = await Peripheral(self.lab, answers(envelope.handoff(), pause=0)).start()
                await self.one_client(watch, cold, name, host)
                await self.one_client(watch, warm, name, host)
                await self.lab.clean()
        rows = {
            "connected": ("scan → connected, s", "{:.2f}"),
            "notification": ("scan → notification, s", "{:.2f}"),
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
        cold.print("client, cold", self.CLIENTS, rows)
        warm.print("client, BlueZ's cache warm", self.CLIENTS, rows)
        await self.count_client_messages(watch)

    async def count_client_messages(self, watch):
        proxy, log = await self.proxy()
        table, calls = Table(), {}
        for name in self.CLIENTS:
            host = await Peripheral(self.lab, answers(envelope.handoff(), pause=0)).start()
            size = os.path.getsize(log)
            await self.one_client(watch, Table(), name, host, proxied=True)
            lines = self.lines(log, size)
            calls[name] = [member for kind, member in lines if kind == "sent call"]
            table.add(
                name, sent=sum(kind.startswith("sent") for kind, _ in lines), calls=len(calls[name]),
                received=sum(kind.startswith("received") for kind, _ in lines),
                connections=sum(kind.startswith("connection") for kind, _ in lines))
            await self.lab.clean()
        proxy.kill()
        table.print("client, D-Bus, cold", self.CLIENTS, {
            "sent": ("messages sent", "{:.0f}"), "calls": ("… of which calls", "{:.0f}"),
            "received": ("messages received", "{:.0f}"), "connections": ("connections", "{:.0f}")})
        for name in self.CLIENTS:
            print(f"{name} calls: {', '.join(calls[name])}")

    @staticmethod
    def lines(log, start):
        with open(log, encoding="utf-8") as file:
            file.seek(start)
            return [tuple(line.strip().rsplit(" ", 1)) for line in file]

    # Hosts

    async def started(self, name, proxied=False):
        process = await self.spawn(self.host(name), proxied)
        while b"serving" not in (line := await asyncio.wait_for(process.stdout.readline(), self.lab.seconds(60))):
            if not line:
                errors = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
                raise RuntimeError(f"{name} does not start: {errors[-1:]}")
        # What it says from now on is not read; it is little.
        await asyncio.sleep(1.5)
        return process

    async def one_guest(self):
        phone = Central.android(self.lab)
        try:
            await phone.join()
            await asyncio.sleep(1.0)
        finally:
            await phone.close()
            self.lab.peers.remove(phone)

    async def hosts(self, count, block=5):
        watch = Watch(self.lab.recorder, "hci0")
        table = Table()
        blocks = max(1, count // block)
        for number in range(blocks):
            for turn in range(len(self.HOSTS)):
                name = self.HOSTS[(number + turn) % len(self.HOSTS)]
                process = await self.started(name)
                try:
                    table.add(name, idle=measure.memory(process.pid)["VmRSS"] / 1024)
                    for _ in range(min(block, count)):
                        watch.reset()
                        cpu = measure.processor(process.pid)
                        await self.one_guest()
                        if watch.gaps:
                            table.add(name, gap=watch.gaps[0] * 1000, cpu=(measure.processor(process.pid) - cpu) * 1000)
                except Exception as error:  # a library's host that fails is a finding, not the end of the table
                    print(f"lab: {name}: {error!r}", flush=True)
                process.kill()
                await process.wait()
                await self.lab.clean()
        await self.count_host_messages(table)
        table.print("host", self.HOSTS, {
            "gap": ("ATT write received → notification sent, ms", "{:.1f}"),
            "cpu": ("CPU a handoff, ms", "{:.1f}"),
            "idle": ("idle resident memory, MB", "{:.1f}"),
            "start": ("D-Bus messages at start", "{:.0f}"),
            "handoff": ("D-Bus messages a handoff, with advertising again", "{:.0f}")})

    async def count_host_messages(self, table):
        proxy, log = await self.proxy()
        for name in self.HOSTS:
            size = os.path.getsize(log)
            process = await self.started(name, proxied=True)
            lines = self.lines(log, size)
            table.add(name, start=sum(kind.split()[0] in ("sent", "received") for kind, _ in lines))
            print(f"{name} at start: {', '.join(' '.join(line) for line in lines)}")
            try:
                # The second guest is the rule: the first may show the host what the controller can do.
                await self.one_guest()
                started = os.path.getsize(log)
                await self.one_guest()
                lines = self.lines(log, started)
                table.add(name, handoff=len(lines))
                print(f"{name} a handoff: {', '.join(' '.join(line) for line in lines)}")
            except Exception as error:
                print(f"lab: {name}: {error!r}", flush=True)
            process.kill()
            await process.wait()
            await self.lab.clean()
        proxy.kill()


async def run(lab, count, only=()):
    cost = Cost(lab)
    for name, measured in (("clients", cost.clients), ("hosts", cost.hosts)):
        if not only or name in only:
            await measured(count)
