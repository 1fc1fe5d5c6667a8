#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client of the emulator bridge's protocol, as an Android emulator is one, and the basic profile on top of it.

Written from shared/bridge-protocol.json and docs/protocol.md alone; standard library only. Like BLEForEmulator's
Android side it sends each command from a thread of its own, so that the order on the wire can differ from the order of
the calls, and it waits for nothing that the protocol has no answer for. Events come from a thread that reads.

  bridge_client.py [--host HOST] [--port PORT] [--disorder MS] join --app-id ID
  bridge_client.py [...]                                        host --app-id ID --payload KEY=VALUE [--joins N]

`join` prints the handoff's envelope as one line and ends with 0; `host` prints "ready", then "joined" for each client.
1: nothing within --timeout; 2: wrong usage; 3: the bridge reported an error; 4: the bridge broke the protocol.
"""

import argparse
import asyncio
import base64
import json
import random
import socket
import sys
import threading
import time

SERVICE = "A1B2C3D4-E5F6-7890-ABCD-EF1234567890"
MESSAGE = "B2C3D4E5-F6A7-8901-BCDE-F12345678901"

# Every event of the protocol's file, with what has to be there.
EVENTS = {
    "bridgeReady": {"protocolVersion": int, "platform": str, "bluetoothState": str},
    "bluetoothStateChanged": {"bluetoothState": str},
    "advertisementFound": {"address": str, "rssi": int, "serviceUuids": list},
    "scanFailed": {"error": str},
    "connected": {"connectionId": str, "address": str},
    "connectionFailed": {"address": str, "error": str},
    "servicesDiscovered": {"connectionId": str, "services": list},
    "characteristicRead": {"connectionId": str, "characteristicUuid": str, "value": str},
    "characteristicChanged": {"connectionId": str, "characteristicUuid": str, "value": str},
    "writeAcknowledged": {"connectionId": str, "characteristicUuid": str},
    "connectionRequestReceived": {"connectionId": str},
    "characteristicWriteReceived": {
        "connectionId": str, "serviceUuid": str, "characteristicUuid": str, "value": str},
    "disconnected": {"connectionId": str},
}


class BridgeError(Exception):
    """The bridge said no, and to what."""


class ProtocolViolation(Exception):
    """The bridge sent what the protocol's file does not have."""


class Bridge:
    def __init__(self, host, port, disorder):
        self.events = asyncio.Queue()
        self._disorder = disorder
        self._loop = asyncio.get_running_loop()
        self._socket = socket.create_connection((host, port), timeout=5)
        self._socket.settimeout(None)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self._socket.makefile("r", encoding="utf-8", newline="\n") as lines:
            try:
                for line in lines:
                    self._loop.call_soon_threadsafe(self.events.put_nowait, json.loads(line))
            except (OSError, ValueError) as error:
                print(f"reading ends: {error}", file=sys.stderr)
        self._loop.call_soon_threadsafe(self.events.put_nowait, None)

    def send(self, command, **fields):
        """Returns at once; nobody learns when, or in which order, it is sent."""
        line = (json.dumps({"command": command, **fields}) + "\n").encode()

        def run():
            if self._disorder:
                time.sleep(random.uniform(0, self._disorder / 1000))
            try:
                self._socket.sendall(line)
            except OSError:
                pass

        threading.Thread(target=run, daemon=True).start()

    async def next(self, *names):
        """The next event of these names; others are left out, but for errors."""
        while True:
            event = await self.events.get()
            if event is None:
                raise BridgeError("the bridge hung up")
            name = event.get("event")
            if name == "error":
                raise BridgeError(f"{event.get('command', 'connection')}: {event.get('error')}")
            for key, kind in EVENTS.get(name, {}).items():
                if not isinstance(event.get(key), kind):
                    raise ProtocolViolation(f"{name} without {key}: {event}")
            if name in names:
                return event
            if name in ("scanFailed", "connectionFailed"):
                raise BridgeError(f"{name}: {event['error']}")

    async def ready(self):
        event = await self.next("bridgeReady")
        if event["protocolVersion"] != 1:
            raise ProtocolViolation(f"version {event['protocolVersion']}")
        return event

    def close(self):
        # The reader holds the descriptor until it has seen the end.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def envelope(**fields):
    return base64.b64encode(json.dumps({"protocolVersion": 1, **fields}, separators=(",", ":")).encode()).decode()


async def join(bridge, arguments):
    await bridge.ready()
    place = {"serviceUuid": SERVICE, "characteristicUuid": MESSAGE}
    bridge.send("startScan", serviceUuids=[SERVICE])
    while True:
        found = await bridge.next("advertisementFound")
        if SERVICE in found["serviceUuids"]:
            break
    bridge.send("stopScan")
    bridge.send("connect", address=found["address"], id="connect")
    link = (await bridge.next("connected"))["connectionId"]
    bridge.send("discoverServices", connectionId=link)
    services = (await bridge.next("servicesDiscovered"))["services"]
    found = [c["properties"] for s in services if s["uuid"] == SERVICE for c in s["characteristics"]
             if c["uuid"] == MESSAGE]
    if not found or not {"write", "notify"} <= set(found[0]):
        raise ProtocolViolation(f"no such characteristic: {services}")
    # Neither waits for the other: `setNotify` has no answer.
    bridge.send("setNotify", connectionId=link, enable=True, **place)
    bridge.send("writeCharacteristic", connectionId=link, id="request", withResponse=True,
                value=envelope(type="join_request", appId=arguments.app_id), **place)
    answer = await bridge.next("characteristicChanged")
    if answer["connectionId"] != link or answer["characteristicUuid"] != MESSAGE:
        raise ProtocolViolation(f"another's notification: {answer}")
    text = base64.b64decode(answer["value"], validate=True).decode()
    print(text, flush=True)
    bridge.send("disconnect", connectionId=link)
    await bridge.next("disconnected")
    return 0 if json.loads(text).get("type") == "handoff" else 3


async def host(bridge, arguments):
    await bridge.ready()
    payload = dict(pair.split("=", 1) for pair in arguments.payload)
    # Both at once, as an app does that has a name to show.
    bridge.send("advertise", serviceUuids=[SERVICE], localName="Emulator", characteristics=[
        {"serviceUuid": SERVICE, "characteristicUuid": MESSAGE, "properties": ["write", "notify"],
         "permissions": ["writeable"]}])
    print("ready", flush=True)
    known = set()
    for _ in range(arguments.joins):
        while True:
            event = await bridge.next("connectionRequestReceived", "characteristicWriteReceived", "disconnected")
            central = event["connectionId"]
            if event["event"] == "connectionRequestReceived":
                known.add(central)
            elif event["event"] == "characteristicWriteReceived":
                if central not in known:
                    raise ProtocolViolation(f"a write of a central that has not come: {event}")
                request = json.loads(base64.b64decode(event["value"], validate=True))
                if request.get("type") == "join_request" and request.get("appId") == arguments.app_id:
                    break
        bridge.send("sendNotification", connectionId=central, serviceUuid=SERVICE, characteristicUuid=MESSAGE,
                    value=envelope(type="handoff", appId=arguments.app_id, sessionId="emulator", payload=payload))
        while (await bridge.next("disconnected"))["connectionId"] != central:
            pass
        print("joined", flush=True)
    bridge.send("stopAdvertise")
    await asyncio.sleep(0.2)
    return 0


async def run(arguments):
    bridge = Bridge(arguments.host, arguments.port, arguments.disorder)
    try:
        return await asyncio.wait_for(arguments.run(bridge, arguments), arguments.timeout)
    except asyncio.TimeoutError:
        print("nothing in time", file=sys.stderr)
        return 1
    except BridgeError as error:
        print(f"the bridge: {error}", file=sys.stderr)
        return 3
    except ProtocolViolation as error:
        print(f"the protocol: {error}", file=sys.stderr)
        return 4
    finally:
        bridge.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7877)
    parser.add_argument("--timeout", type=float, default=60, help="seconds")
    parser.add_argument("--disorder", type=float, default=0, help="each thread waits up to so many milliseconds")
    commands = parser.add_subparsers(dest="command", required=True)
    joining = commands.add_parser("join")
    joining.set_defaults(run=join)
    hosting = commands.add_parser("host")
    hosting.set_defaults(run=host)
    hosting.add_argument("--payload", action="append", default=[], metavar="KEY=VALUE")
    hosting.add_argument("--joins", type=int, default=1)
    for command in (joining, hosting):
        command.add_argument("--app-id", required=True)
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
