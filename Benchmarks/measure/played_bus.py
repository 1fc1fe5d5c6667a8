# SPDX-License-Identifier: MIT
"""For played_bluez.py: a bus connection that blocks, and what another process costs. Runs where dbus-fast is installed,
whose codec it takes."""
import collections
import io
import os
import select
import socket
import time

from dbus_fast import Message
from dbus_fast._private.unmarshaller import Unmarshaller


class Bus:
    """A connection that blocks; what comes is stamped when its bytes do."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address.removeprefix("unix:path="))
        self.serial = 0
        self.buffer = b""
        self.messages = collections.deque()
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        if not self.socket.recv(256).startswith(b"OK"):
            raise ConnectionError("the bus refuses us")
        self.socket.sendall(b"BEGIN\r\n")

    def send(self, **fields):
        self.serial += 1
        self.socket.sendall(bytes(Message(serial=self.serial, **fields)._marshall(False)))
        return self.serial

    def receive(self, seconds):
        """(message, when) or None."""
        deadline = time.monotonic() + seconds
        while not self.messages:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return None
            part = self.socket.recv(65536)
            stamp = time.perf_counter()
            if not part:
                raise ConnectionError("the bus is gone")
            self.buffer += part
            self.split(stamp)
        return self.messages.popleft()

    def split(self, stamp):
        while len(self.buffer) >= 16:
            body, fields = int.from_bytes(self.buffer[4:8], "little"), int.from_bytes(self.buffer[12:16], "little")
            size = 16 + (fields + 7) // 8 * 8 + body
            if len(self.buffer) < size:
                return
            message = Unmarshaller(io.BytesIO(self.buffer[:size])).unmarshall()
            self.buffer = self.buffer[size:]
            self.messages.append((message, stamp))


class Process:
    """What a process has cost so far (as Tests/Lab/lab/measure.py)."""

    def __init__(self, pid):
        self.folder = f"/proc/{pid}"

    def snapshot(self):
        cpu = switches = voluntary = 0
        for thread in os.listdir(f"{self.folder}/task"):
            with open(f"{self.folder}/task/{thread}/schedstat", encoding="utf-8") as file:
                cpu += int(file.read().split()[0])
            with open(f"{self.folder}/task/{thread}/status", encoding="utf-8") as file:
                for line in file:
                    if "ctxt_switches" in line:
                        switches += int(line.split()[1])
                        voluntary += int(line.split()[1]) if line.startswith("voluntary") else 0
        return {"cpu_us": cpu / 1000, "switches": switches, "voluntary": voluntary, **self.memory()}

    def memory(self):
        with open(f"{self.folder}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return {"rss_kb": int(fields["VmRSS"].split()[0]), "peak_kb": int(fields["VmHWM"].split()[0])}


def spent(before, after):
    return {key: after[key] - before[key] for key in ("cpu_us", "switches", "voluntary")}
