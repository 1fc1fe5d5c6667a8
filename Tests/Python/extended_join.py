#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python port of the extended client joins over bleak: one search, its answer as a line of JSON on standard output.

The passcode is the first line of standard input with --passcode. What goes on is told on standard error. Exit status:
0 a handoff, 3 a rejection, 4 nobody found, 5 no answer or a lost link, 6 a wrong passcode, 7 security required,
1 anything else. The bus is the system bus: DBUS_SYSTEM_BUS_ADDRESS names another one.
"""

import argparse
import asyncio
import json
import sys

from bleak import BleakClient, BleakScanner
from bleak.exc import BleakError, BleakGATTProtocolError

from extended_search import CHANNEL, HELLO, SERVICE, Ended, Link, Refused, Search

STATUS = {"rejected": 3, "no_answer": 5, "link": 5, "wrong_passcode": 6, "security_required": 7}


def tell(text):
    print(text, file=sys.stderr, flush=True)


class BleakLink(Link):
    @classmethod
    async def open(cls, device, adapter):
        link = cls()
        link.lost = lambda: None
        link.client = BleakClient(
            device, disconnected_callback=lambda _: link.lost(), timeout=10, bluez={"adapter": adapter}
        )
        try:
            await link.client.connect()
        except (BleakError, OSError, asyncio.TimeoutError) as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from None
        link._find_mtu()
        return link

    def _find_mtu(self):
        channel = self.client.services.get_characteristic(CHANNEL)
        # BlueZ tells the MTU since 5.62; 20 is also what bleak says where it does not know.
        size = channel.max_write_without_response_size if channel else 20
        self.mtu = size + 3 if size > 20 else None

    async def _do(self, step):
        try:
            return await step
        except BleakGATTProtocolError as error:
            raise Refused(int(error.code)) from None
        except (BleakError, OSError, EOFError) as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from None

    async def hello(self):
        services = self.client.services
        if services.get_characteristic(HELLO) is None or services.get_characteristic(CHANNEL) is None:
            return None
        try:
            return bytes(await self._do(self.client.read_gatt_char(HELLO)))
        except Refused as error:
            raise ConnectionError(f"hello: {error}") from None

    async def subscribe(self, notified, lost):
        self.lost = lost
        await self._do(self.client.start_notify(CHANNEL, lambda _, value: notified(bytes(value))))

    async def write(self, frame):
        await self._do(self.client.write_gatt_char(CHANNEL, frame, response=True))

    async def close(self):
        await self._do(self.client.disconnect())


async def find(options):
    """The first device that advertises the service, or None."""
    found = asyncio.get_running_loop().create_future()

    def detected(device, data):
        if SERVICE in data.service_uuids and not found.done():
            found.set_result(device)

    async with BleakScanner(detected, service_uuids=[SERVICE], bluez={"adapter": options.adapter}):
        try:
            return await asyncio.wait_for(found, options.scan_timeout)
        except asyncio.TimeoutError:
            return None


async def run(options):
    passcode = sys.stdin.readline().rstrip("\n") if options.passcode else None
    device = await find(options)
    if device is None:
        tell("nobody found")
        return 4

    async def dial():
        link = await BleakLink.open(device, options.adapter)
        tell(f"connected, MTU {link.mtu}")
        return link

    payload = json.loads(options.payload)
    steps = []
    search = Search(dial, options.app_id, passcode=passcode, payload=payload, progress=steps.append)
    try:
        handoff = await asyncio.wait_for(search.run(), options.timeout)
    except Ended as error:
        tell(f"sealed={error.sealed}, retryAfter={error.retry_after}")
        print(str(error), flush=True)
        return STATUS.get(error.code, 1)
    tell(f"{len(steps)} steps of progress, the last {steps[-1]} bytes")
    print(json.dumps(handoff, separators=(",", ":"), ensure_ascii=False), flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description="one extended NearbyDiscoveryKit join in Python")
    parser.add_argument("--adapter", default="hci1")
    parser.add_argument("--app-id", default="com.example.myapp")
    parser.add_argument("--passcode", action="store_true", help="the first line of standard input is the passcode")
    parser.add_argument("--payload", default="{}", help="a JSON object to send along")
    parser.add_argument("--scan-timeout", type=float, default=10.0, help="seconds")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for the search")
    options = parser.parse_args()
    sys.exit(asyncio.run(run(options)))


if __name__ == "__main__":
    main()
