# SPDX-License-Identifier: MIT
"""The libraries with which people serve GATT from Python on Linux: bless and bluez-peripheral."""
import asyncio

from .. import envelope
from .dbus_host import basic_answer


class BlessHost:
    """bless (kevincar/bless). Its write callback is synchronous, so the answer goes out on the loop's next turn."""

    def __init__(self, lab, adapter="hci0"):
        self.lab = lab
        self.adapter = adapter
        self.server = None
        lab.at_end(self.stop)

    async def start(self):
        from bless import BlessServer, GATTAttributePermissions, GATTCharacteristicProperties

        loop = asyncio.get_running_loop()
        self.server = BlessServer(name="BLESS", loop=loop, adapter=self.adapter)
        self.server.read_request_func = lambda characteristic, **more: characteristic.value
        self.server.write_request_func = lambda characteristic, value, **more: loop.call_soon(
            self.written, bytes(value)
        )
        await self.server.add_new_service(envelope.SERVICE)
        await self.server.add_new_characteristic(
            envelope.SERVICE,
            envelope.MESSAGE,
            GATTCharacteristicProperties.write | GATTCharacteristicProperties.notify,
            None,
            GATTAttributePermissions.writeable | GATTAttributePermissions.readable,
        )
        await self.server.start()
        return self

    def written(self, value):
        for message in basic_answer(value):
            self.server.get_characteristic(envelope.MESSAGE).value = bytearray(message)
            self.server.update_value(envelope.SERVICE, envelope.MESSAGE)

    async def stop(self):
        if self.server is not None:
            server, self.server = self.server, None
            await server.stop()


class BluezPeripheralHost:
    """bluez-peripheral (spacecheese/bluez_peripheral), which sits on dbus-next."""

    def __init__(self, lab, adapter="hci0"):
        self.lab = lab
        self.adapter = adapter
        self.bus = None
        lab.at_end(self.stop)

    async def start(self):
        from bluez_peripheral.advert import Advertisement
        from bluez_peripheral.gatt.characteristic import CharacteristicFlags, characteristic
        from bluez_peripheral.gatt.service import Service
        from bluez_peripheral.util import Adapter, get_message_bus

        loop = asyncio.get_running_loop()

        class Kit(Service):
            def __init__(self):
                super().__init__(envelope.SERVICE, True)

            @characteristic(envelope.MESSAGE, CharacteristicFlags.WRITE | CharacteristicFlags.NOTIFY).setter
            def message(self, value, options):
                for answer in basic_answer(bytes(value)):
                    loop.call_soon(self.message.changed, answer)

        self.bus = await get_message_bus()
        path = f"/org/bluez/{self.adapter}"
        adapter = Adapter(self.bus.get_proxy_object("org.bluez", path, await self.bus.introspect("org.bluez", path)))
        await Kit().register(self.bus, adapter=adapter)
        await Advertisement("PERIPHERAL", [envelope.SERVICE], 0, 0).register(self.bus, adapter)
        return self

    async def stop(self):
        if self.bus is not None:
            self.bus.disconnect()
            self.bus = None
