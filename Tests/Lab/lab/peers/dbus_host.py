# SPDX-License-Identifier: MIT
"""A GATT server written straight on dbus-fast: the host that somebody writes in an afternoon. It is a foreign peer
for `nearby join`, and stands in for `nearby host` when the lab tests itself."""
import asyncio

from dbus_fast import BusType, DBusError, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.constants import PropertyAccess
from dbus_fast.service import ServiceInterface, dbus_property, method

from .. import envelope
from ..bluez import BusError

READ = PropertyAccess.READ


class _Service(ServiceInterface):
    def __init__(self):
        super().__init__("org.bluez.GattService1")

    @dbus_property(access=READ)
    def UUID(self) -> "s":
        return envelope.SERVICE

    @dbus_property(access=READ)
    def Primary(self) -> "b":
        return True


class _Message(ServiceInterface):
    def __init__(self, host):
        super().__init__("org.bluez.GattCharacteristic1")
        self.host = host
        self.notifying = False

    @dbus_property(access=READ)
    def UUID(self) -> "s":
        return envelope.MESSAGE

    @dbus_property(access=READ)
    def Service(self) -> "o":
        return "/lab/service"

    @dbus_property(access=READ)
    def Flags(self) -> "as":
        return ["write", "notify"]

    @dbus_property(access=READ)
    def Notifying(self) -> "b":
        return self.notifying

    @dbus_property(access=READ)
    def NotifyAcquired(self) -> "b":
        return False

    @dbus_property(access=READ)
    def Value(self) -> "ay":
        return b""

    @method()
    def AcquireNotify(self, options: "a{sv}") -> "hq":
        # BlueZ tells the subscriber's device here and nowhere else; NotSupported makes it go on with StartNotify.
        self.host.note("acquire", device=options["device"].value, mtu=options["mtu"].value)
        raise DBusError("org.bluez.Error.NotSupported", "notifications go by PropertiesChanged")

    @method()
    def StartNotify(self):
        self.notifying = True
        self.host.note("subscribed")

    @method()
    def StopNotify(self):
        self.notifying = False
        self.host.note("unsubscribed")

    @method()
    def WriteValue(self, value: "ay", options: "a{sv}"):
        options = {key: option.value for key, option in options.items()}
        self.host.written(bytes(value), options)


class _Advertisement(ServiceInterface):
    def __init__(self, host):
        super().__init__("org.bluez.LEAdvertisement1")
        self.host = host

    @dbus_property(access=READ)
    def Type(self) -> "s":
        return "peripheral"

    @dbus_property(access=READ)
    def ServiceUUIDs(self) -> "as":
        return [envelope.SERVICE]

    @dbus_property(access=READ)
    def LocalName(self) -> "s":
        return self.host.name

    @dbus_property(access=READ)
    def Discoverable(self) -> "b":
        return True

    @dbus_property(access=READ, disabled=False)
    def MinInterval(self) -> "u":
        return 100

    @dbus_property(access=READ)
    def MaxInterval(self) -> "u":
        return 150

    @method()
    def Release(self):
        self.host.note("released")


class DBusHost:
    """`answer(request) -> [messages]` decides; what happens to the host is in `events`."""

    def __init__(self, lab, adapter="hci0", answer=None, name="LABHOST"):
        self.lab = lab
        self.adapter = f"/org/bluez/{adapter}"
        self.name = name
        self.answer = answer or basic_answer
        self.events = []
        self.bus = None
        self.message = _Message(self)
        self.advertisement = _Advertisement(self)
        lab.at_end(self.stop)

    def note(self, event, **more):
        self.events.append({"event": event, **more})

    def seen(self, event):
        return [each for each in self.events if each["event"] == event]

    async def start(self):
        self.bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        self.bus.export("/lab/service", _Service())
        self.bus.export("/lab/service/message", self.message)
        self.bus.export("/lab/advertisement", self.advertisement)
        await self.register()
        return self

    async def only_advertise(self):
        """Takes an advertisement's place, and serves nothing."""
        self.bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        self.bus.export("/lab/advertisement", self.advertisement)
        await self._call("org.bluez.LEAdvertisingManager1", "RegisterAdvertisement", "/lab/advertisement", {})
        return self

    async def register(self):
        await self._call("org.bluez.GattManager1", "RegisterApplication", "/lab", {})
        await self._call("org.bluez.LEAdvertisingManager1", "RegisterAdvertisement", "/lab/advertisement", {})

    async def advertise_again(self):
        """While a central is connected the adapter has stopped: a fresh registration brings it back."""
        await self._call("org.bluez.LEAdvertisingManager1", "UnregisterAdvertisement", "/lab/advertisement")
        await self._call("org.bluez.LEAdvertisingManager1", "RegisterAdvertisement", "/lab/advertisement", {})

    async def _call(self, interface, member, path, *options):
        reply = await self.bus.call(
            Message(
                destination="org.bluez",
                path=self.adapter,
                interface=interface,
                member=member,
                signature="oa{sv}" if options else "o",
                body=[path, *options],
            )
        )
        if reply.message_type == MessageType.ERROR:
            raise BusError(reply.error_name, reply.body[0] if reply.body else "")

    def written(self, value, options):
        self.note("written", value=value, options=options)
        for message in self.answer(value):
            self.notify(message)

    def notify(self, message):
        self.message.emit_properties_changed({"Value": message})

    def announce(self, **changed):
        """Says that the advertisement has changed, whatever it answers when it is asked."""
        self.advertisement.emit_properties_changed(changed)

    async def stop(self):
        if self.bus is not None:
            self.bus.disconnect()
            self.bus = None
            await asyncio.sleep(0)


def basic_answer(request):
    try:
        asked = envelope.decode(request)
        app = asked["appId"]
    except (ValueError, KeyError, TypeError):
        return [envelope.reject("malformed", "-")]
    return [envelope.handoff() if app == envelope.APP else envelope.reject("app_mismatch", app)]
