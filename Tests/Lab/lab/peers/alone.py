# SPDX-License-Identifier: MIT
"""alone.py client|host NAME ADAPTER: one library's client or host as a process of its own, to be measured.

A client joins once and prints the answer; a host serves until it is ended. The host named raw answers any request with
64 KiB in values of 512 bytes, as fast as its bus takes them: what a transfer can reach.
"""
import asyncio
import os
import sys
import types

role, name, adapter = sys.argv[1:]
version = tuple(int(part) for part in os.environ["LAB_BLUEZ"].split("."))
# What the peers want of a lab: they were not written for this place.
lab = types.SimpleNamespace(seconds=lambda limit: limit, at_end=lambda action: None, bluez_version=version)


async def client():
    from lab.peers.bleak_client import BleakJoin

    join = BleakJoin(lab, adapter)
    await join.connect()
    await join.subscribe()
    await join.write()
    print(await join.answer(), flush=True)
    await join.client.disconnect()


async def host():
    more = []
    if name in ("dbus-fast", "raw"):
        from lab.peers.dbus_host import DBusHost as Host

        if name == "raw":
            more = [lambda request: [bytes(512)] * 128]
    elif name == "bless":
        from lab.peers.library_hosts import BlessHost as Host
    else:
        from lab.peers.library_hosts import BluezPeripheralHost as Host
    await Host(lab, adapter, *more).start()
    print("serving", flush=True)
    await asyncio.Event().wait()


asyncio.run(client() if role == "client" else host())
