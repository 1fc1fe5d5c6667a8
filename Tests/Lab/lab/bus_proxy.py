# SPDX-License-Identifier: MIT
"""bus_proxy.py SOCKET LOG: stands between one process and the system bus, and writes a line for each D-Bus message:
`sent` or `received`, its kind, its member, what it is about (a call of Properties or its signal: the interface; else
"-"), its serial, and the serial that it answers or 0. File descriptors pass, too. For counting, never for timing."""
import array
import os
import socket
import struct
import sys
import threading

KINDS = {1: "call", 2: "return", 3: "error", 4: "signal"}
# Header fields: their code and signature (D-Bus specification, "Message Format").
MEMBER, REPLY_SERIAL = b"\x03\x01s\x00", b"\x05\x01u\x00"
# What has an interface's name as its first argument.
ABOUT = ("PropertiesChanged", "Get", "GetAll", "Set")
BUS = "/run/dbus/system_bus_socket"


class Reader:
    """Cuts one direction's bytes into messages."""

    def __init__(self, direction, log):
        self.direction = direction
        self.log = log
        self.buffer = b""
        self.talking = False

    def feed(self, data):
        self.buffer += data
        while not self.talking:
            # The authentication is lines. Messages begin with l or B for their byte order; no server's line does.
            if self.direction == "received" and self.buffer[:1] in (b"l", b"B"):
                self.talking = True
                break
            line, end, rest = self.buffer.partition(b"\r\n")
            if not end:
                return
            self.buffer = rest
            self.talking = line == b"BEGIN"
        while len(self.buffer) >= 16:
            order = "<" if self.buffer[:1] == b"l" else ">"
            body, fields = struct.unpack_from(order + "I", self.buffer, 4)[0], struct.unpack_from(
                order + "I", self.buffer, 12)[0]
            header = 16 + (fields + 7) // 8 * 8
            if len(self.buffer) < header + body:
                return
            place = self.buffer.find(MEMBER, 16, header)
            member = self.string(place + 4, order) if place >= 0 else "-"
            about = self.string(header, order) if member in ABOUT else "-"
            [serial] = struct.unpack_from(order + "I", self.buffer, 8)
            place = self.buffer.find(REPLY_SERIAL, 16, header)
            answered = struct.unpack_from(order + "I", self.buffer, place + 4)[0] if place >= 0 else 0
            self.log.write(
                f"{self.direction} {KINDS.get(self.buffer[1], '?')} {member} {about} {serial} {answered}\n")
            self.buffer = self.buffer[header + body :]

    def string(self, place, order):
        [length] = struct.unpack_from(order + "I", self.buffer, place)
        return self.buffer[place + 4 : place + 4 + length].decode(errors="replace")


def pump(source, target, reader):
    space = socket.CMSG_SPACE(16 * array.array("i").itemsize)
    while True:
        try:
            data, ancillary, _, _ = source.recvmsg(65536, space)
        except OSError:
            data = b""
        if not data:
            for each in (source, target):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            return
        reader.feed(data)
        target.sendmsg([data], [(level, kind, value) for level, kind, value in ancillary])
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                for descriptor in array.array("i", value):
                    os.close(descriptor)


def main():
    path, log_path = sys.argv[1:]
    log = open(log_path, "w", buffering=1, encoding="utf-8")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        client, _ = listener.accept()
        bus = socket.socket(socket.AF_UNIX)
        bus.connect(BUS)
        log.write("connection - - - 0 0\n")
        for arguments in ((client, bus, Reader("sent", log)), (bus, client, Reader("received", log))):
            threading.Thread(target=pump, args=arguments, daemon=True).start()


main()
