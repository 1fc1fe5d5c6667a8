# SPDX-License-Identifier: MIT
"""bleak as the client: what a Python user would write today. A foreign peer for `nearby host`, and stands in for
`nearby join` when the lab tests itself."""
import asyncio

from bleak import BleakClient, BleakScanner

from .. import envelope
from ..bluez import dies_of_service_filters


class BleakJoin:
    def __init__(self, lab, adapter="hci1"):
        self.lab = lab
        self.adapter = adapter
        self.client = None
        self.received = asyncio.Queue()

    async def find(self, timeout=20):
        found = asyncio.get_running_loop().create_future()

        def heard(device, advertisement):
            if envelope.SERVICE in advertisement.service_uuids and not found.done():
                found.set_result(device)

        services = [] if dies_of_service_filters(self.lab.bluez_version) else [envelope.SERVICE]
        async with BleakScanner(heard, service_uuids=services, bluez={"adapter": self.adapter}):
            try:
                return await asyncio.wait_for(found, self.lab.seconds(timeout))
            except asyncio.TimeoutError:
                raise AssertionError("bleak finds no host that advertises the service") from None

    async def connect(self):
        device = await self.find()
        self.client = BleakClient(device, bluez={"adapter": self.adapter})
        await self.client.connect()

    async def subscribe(self):
        await self.client.start_notify(
            envelope.MESSAGE, lambda characteristic, value: self.received.put_nowait(bytes(value))
        )

    async def write(self, request=None):
        await self.client.write_gatt_char(
            envelope.MESSAGE, envelope.join_request() if request is None else request, response=True
        )

    async def answer(self, timeout=12):
        return envelope.decode(await asyncio.wait_for(self.received.get(), self.lab.seconds(timeout)))

    async def join(self, request=None):
        await self.connect()
        try:
            await self.subscribe()
            await self.write(request)
            return await self.answer()
        finally:
            await self.client.disconnect()
