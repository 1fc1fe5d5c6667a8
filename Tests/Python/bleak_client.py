#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A NearbyDiscoveryKit client that shares no code with ours: one join over the basic profile, in plain bleak.

Scans for the service, connects, subscribes, writes a join_request, and prints the answer it is notified of as one line
of JSON on standard output. Exit status: 0 a handoff, 3 a reject (also an ATT error on the write), 4 nobody found,
5 connected but no answer, 1 anything else. What goes on is told on standard error.

The bus is the system bus: DBUS_SYSTEM_BUS_ADDRESS names another one.
"""

import argparse
import asyncio
import json
import sys

from bleak import BleakClient, BleakScanner
from bleak.exc import BleakError

SERVICE = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
MESSAGE = "b2c3d4e5-f6a7-8901-bcde-f12345678901"


def tell(text):
    print(text, file=sys.stderr, flush=True)


async def find(options):
    """The first device that advertises the service, or None."""
    found = asyncio.get_running_loop().create_future()

    def detected(device, data):
        if SERVICE in data.service_uuids and not found.done():
            tell(f"found {device.address} name={data.local_name!r} rssi={data.rssi}")
            found.set_result(device)

    async with BleakScanner(detected, service_uuids=[SERVICE], bluez={"adapter": options.adapter}):
        try:
            return await asyncio.wait_for(found, options.scan_timeout)
        except asyncio.TimeoutError:
            return None


async def join(options):
    device = await find(options)
    if device is None:
        tell("nobody found")
        return 4
    text = bytearray()
    answer = asyncio.get_running_loop().create_future()

    def notified(_, value):
        # Some hosts split an answer over several notifications, without a header.
        text.extend(value)
        try:
            message = json.loads(text.decode())
        except ValueError:
            return
        if not answer.done():
            answer.set_result(message)

    async with BleakClient(device, timeout=options.connect_timeout, bluez={"adapter": options.adapter}) as client:
        tell(f"connected, services: {[service.uuid for service in client.services]}")
        await client.start_notify(MESSAGE, notified)
        request = {"type": "join_request", "protocolVersion": 1, "appId": options.app_id}
        data = json.dumps(request, separators=(",", ":")).encode()
        try:
            await client.write_gatt_char(MESSAGE, data, response=True)
        except BleakError as error:
            tell(f"write refused: {error}")
            return 3
        tell(f"wrote {len(data)} bytes")
        try:
            message = await asyncio.wait_for(answer, options.answer_timeout)
        except asyncio.TimeoutError:
            tell(f"no answer, {len(text)} bytes came")
            return 5
        print(json.dumps(message, separators=(",", ":")), flush=True)
        return 0 if message.get("type") == "handoff" else 3


def main():
    parser = argparse.ArgumentParser(description="one NearbyDiscoveryKit join in bleak")
    parser.add_argument("--adapter", default="hci1")
    parser.add_argument("--app-id", default="com.example.myapp")
    parser.add_argument("--scan-timeout", type=float, default=10.0, help="seconds")
    parser.add_argument("--connect-timeout", type=float, default=10.0, help="seconds")
    parser.add_argument("--answer-timeout", type=float, default=10.0, help="seconds")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(join(options)))
    except BleakError as error:
        tell(f"{type(error).__name__}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
