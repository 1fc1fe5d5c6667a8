#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A NearbyDiscoveryKit host that shares no code with ours: a GATT server in plain dbus-fast.

Registers the service and its message characteristic with BlueZ, advertises, and answers every join_request with a
handoff for the same appId. It speaks the basic profile as today's mobile peers do: no seal, no admission.

Prints one line "ready" when it is registered and advertising, one line "request <JSON>" for each join request, and runs
until it is told to stop (SIGINT, SIGTERM) or --joins requests have been answered and their notification sent.

The bus is the system bus: DBUS_SYSTEM_BUS_ADDRESS names another one.
"""

import argparse
import asyncio
import json
import signal
import sys

from dbus_fast import BusType, DBusError, Message, MessageType, PropertyAccess
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property

SERVICE = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
MESSAGE = "b2c3d4e5-f6a7-8901-bcde-f12345678901"
ROOT = "/ndk/python"


class Service(ServiceInterface):
    def __init__(self):
        super().__init__("org.bluez.GattService1")

    @dbus_property(PropertyAccess.READ)
    def UUID(self) -> "s":
        return SERVICE

    @dbus_property(PropertyAccess.READ)
    def Primary(self) -> "b":
        return True


class Characteristic(ServiceInterface):
    def __init__(self, options, finished):
        super().__init__("org.bluez.GattCharacteristic1")
        self.options = options
        self.finished = finished
        self.value = b""
        self.notifying = False
        self.joins = 0

    @dbus_property(PropertyAccess.READ)
    def UUID(self) -> "s":
        return MESSAGE

    @dbus_property(PropertyAccess.READ)
    def Service(self) -> "o":
        return ROOT + "/service0"

    @dbus_property(PropertyAccess.READ)
    def Flags(self) -> "as":
        return ["write", "notify"]

    @dbus_property(PropertyAccess.READ)
    def Value(self) -> "ay":
        return self.value

    @dbus_property(PropertyAccess.READ)
    def Notifying(self) -> "b":
        return self.notifying

    @dbus_method()
    def StartNotify(self):
        self.notifying = True

    @dbus_method()
    def StopNotify(self):
        self.notifying = False

    @dbus_method()
    def WriteValue(self, value: "ay", options: "a{sv}"):
        try:
            request = json.loads(bytes(value).decode())
            app_id = request["appId"]
            valid = request["type"] == "join_request" and request["protocolVersion"] == 1
        except (ValueError, KeyError, TypeError):
            raise DBusError("org.bluez.Error.Failed", "0x80")
        if not valid or not isinstance(app_id, str):
            raise DBusError("org.bluez.Error.Failed", "0x80")
        print("request " + json.dumps(request, separators=(",", ":")), flush=True)
        handoff = {
            "type": "handoff",
            "protocolVersion": 1,
            "appId": app_id,
            "sessionId": self.options.session_id,
            "payload": json.loads(self.options.payload),
        }
        self.value = json.dumps(handoff, separators=(",", ":")).encode()
        # After the answer to the write, as a host that has to ask somebody does.
        asyncio.get_running_loop().call_later(self.options.delay, self.notify)

    def notify(self):
        self.emit_properties_changed({"Value": self.value})
        self.joins += 1
        if self.options.joins and self.joins >= self.options.joins:
            # The signal has to leave before the bus connection goes.
            asyncio.get_running_loop().call_later(self.options.linger, self.finished.set)


class Advertisement(ServiceInterface):
    def __init__(self, name):
        super().__init__("org.bluez.LEAdvertisement1")
        self.local_name = name  # not "name": that is the interface's own
        self.power = 0

    @dbus_property(PropertyAccess.READ)
    def Type(self) -> "s":
        return "peripheral"

    @dbus_property(PropertyAccess.READ)
    def ServiceUUIDs(self) -> "as":
        return [SERVICE]

    @dbus_property(PropertyAccess.READ)
    def LocalName(self) -> "s":
        return self.local_name

    @dbus_property(PropertyAccess.READ)
    def Discoverable(self) -> "b":
        return True

    @dbus_property()
    def TxPower(self) -> "n":
        return self.power

    @TxPower.setter
    def TxPower(self, value: "n"):
        self.power = value

    @dbus_method()
    def Release(self):
        print("released", flush=True)


async def call(bus, path, interface, member, signature="", body=()):
    reply = await bus.call(
        Message(
            destination="org.bluez", path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
    )
    if reply.message_type is MessageType.ERROR:
        raise SystemExit(f"gatt_server: {member}: {reply.error_name}: {reply.body[0] if reply.body else ''}")
    return reply.body


async def main():
    parser = argparse.ArgumentParser(description="a NearbyDiscoveryKit host in dbus-fast")
    parser.add_argument("--adapter", default="hci0")
    parser.add_argument("--name", default="Python host")
    parser.add_argument("--payload", default='{"roomCode":"PY42"}', help="a JSON object")
    parser.add_argument("--session-id", default="00000000-0000-4000-8000-000000000042")
    parser.add_argument("--joins", type=int, default=0, help="stop after so many handoffs; 0: never")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between the write's answer and the handoff")
    parser.add_argument("--linger", type=float, default=0.5, help="seconds to stay after the last handoff")
    options = parser.parse_args()

    bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
    finished = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, finished.set)

    bus.export(ROOT + "/service0", Service())
    bus.export(ROOT + "/service0/char0", Characteristic(options, finished))
    bus.export(ROOT + "/advertisement0", Advertisement(options.name))

    adapter = "/org/bluez/" + options.adapter
    await call(bus, adapter, "org.bluez.GattManager1", "RegisterApplication", "oa{sv}", (ROOT, {}))
    await call(
        bus, adapter, "org.bluez.LEAdvertisingManager1", "RegisterAdvertisement", "oa{sv}", (ROOT + "/advertisement0", {})
    )
    print("ready", flush=True)

    gone = asyncio.ensure_future(bus.wait_for_disconnect())
    done = asyncio.ensure_future(finished.wait())
    await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
    if gone.done():
        sys.exit("gatt_server: the bus is gone")
    await call(
        bus, adapter, "org.bluez.LEAdvertisingManager1", "UnregisterAdvertisement", "o", (ROOT + "/advertisement0",)
    )
    await call(bus, adapter, "org.bluez.GattManager1", "UnregisterApplication", "o", (ROOT,))
    gone.cancel()
    bus.disconnect()


if __name__ == "__main__":
    asyncio.run(main())
