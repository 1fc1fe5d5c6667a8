# SPDX-License-Identifier: MIT
"""The lab's own view of bluetoothd over D-Bus: to prepare, to look and to clean up, never to play a peer."""
import asyncio

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

ADAPTER = "org.bluez.Adapter1"
DEVICE = "org.bluez.Device1"
ADVERTISING = "org.bluez.LEAdvertisingManager1"
PROPERTIES = "org.freedesktop.DBus.Properties"


def keeps_centrals(version):
    """5.87 does not forget the device objects of centrals that have left (docs/bluez.md)."""
    return version >= (5, 87)


def counts_the_header(version):
    """bluez/bluez#570: a write request's header counts as value, so 510 bytes (508 in prepared writes) are the most.
    Mended in 5.69; not yet there in 5.55, as seen here."""
    return (5, 56) <= version < (5, 69)


def dies_of_service_filters(version):
    """bluez/bluez#2282: a discovery filter with UUIDs takes bluetoothd 5.87 down at the first report that has any."""
    return version[:2] == (5, 87)


def dies_of_refused_refreshes(version):
    """BlueZ commit 6b5447583: an advertisement that is registered and then refused takes bluetoothd down."""
    return (5, 56) <= version < (5, 75)


class BusError(Exception):
    """An error answer; `name` is D-Bus's."""

    def __init__(self, name, text):
        super().__init__(f"{name}: {text}")
        self.name = name


class BlueZ:
    def __init__(self):
        self._bus = None

    async def bus(self):
        if self._bus is None or not self._bus.connected:
            self._bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        return self._bus

    def forget_bus(self):
        """After the bus daemon has ended."""
        if self._bus is not None:
            self._bus.disconnect()
            self._bus = None

    async def call(self, path, interface, member, signature="", body=(), destination="org.bluez", timeout=25):
        bus = await self.bus()
        message = Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        reply = await asyncio.wait_for(bus.call(message), timeout)
        if reply.message_type == MessageType.ERROR:
            raise BusError(reply.error_name, reply.body[0] if reply.body else "")
        return reply.body

    async def objects(self):
        [objects] = await self.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
        return {
            path: {name: {key: value.value for key, value in values.items()} for name, values in interfaces.items()}
            for path, interfaces in objects.items()
        }

    async def get(self, path, interface, name):
        [value] = await self.call(path, PROPERTIES, "Get", "ss", [interface, name])
        return value.value

    async def set(self, path, interface, name, signature, value):
        await self.call(path, PROPERTIES, "Set", "ssv", [interface, name, Variant(signature, value)])

    async def powered(self):
        """The adapters that are on, by name; empty where there is no bluetoothd."""
        try:
            objects = await self.objects()
        except (BusError, OSError, EOFError, asyncio.TimeoutError):
            return set()
        return {
            path.rsplit("/", 1)[1]
            for path, interfaces in objects.items()
            if interfaces.get(ADAPTER, {}).get("Powered") and ADVERTISING in interfaces
        }

    async def wait_powered(self, names, timeout=30):
        deadline = asyncio.get_running_loop().time() + timeout
        while not set(names) <= await self.powered():
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"bluetoothd does not show {', '.join(sorted(names))} as powered")
            await asyncio.sleep(0.1)

    async def set_powered(self, name, on):
        await self.set(f"/org/bluez/{name}", ADAPTER, "Powered", "b", on)

    async def active_instances(self, name):
        return await self.get(f"/org/bluez/{name}", ADVERTISING, "ActiveInstances")

    async def devices(self):
        return {path: values[DEVICE] for path, values in (await self.objects()).items() if DEVICE in values}

    async def forget_devices(self):
        """Disconnects and removes every device, so that a case starts cold."""
        for path in await self.devices():
            try:
                await self.call(path.rsplit("/", 1)[0], ADAPTER, "RemoveDevice", "o", [path])
            except BusError as error:
                if error.name != "org.bluez.Error.DoesNotExist":
                    raise
