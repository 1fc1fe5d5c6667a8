# SPDX-License-Identifier: MIT
"""What the Bumble peers share: a device with a controller of its own on the lab's medium."""
import asyncio

from bumble.device import Device, DeviceConfiguration
from bumble.hci import Address
from bumble.host import Host
from bumble.transport.common import AsyncPipeSink

from ..radio import LabController


class BumblePeer:
    """A whole Bluetooth stack that shares nothing with BlueZ. `mtu` is the largest that it agrees to, in both roles:
    bluetoothd asks a central for its MTU as well, and the larger answer wins."""

    count = 0

    def __init__(self, lab, name, mtu):
        BumblePeer.count += 1
        number = BumblePeer.count
        self.lab = lab
        self.name = f"{name}#{number}"
        self.mtu = mtu
        # A new address for each peer: nothing that bluetoothd remembers of an earlier one applies.
        self.address = Address(f"C1:00:00:00:{number >> 8 & 0xFF:02X}:{number & 0xFF:02X}")
        self.controller = LabController(
            self.name,
            lab.medium,
            public_address=f"C0:00:00:00:{number >> 8 & 0xFF:02X}:{number & 0xFF:02X}",
            recorder=lab.recorder,
        )
        host = Host(self.controller, AsyncPipeSink(self.controller))
        self.device = Device(config=DeviceConfiguration(name=name, address=self.address), host=host)
        self.device.gatt_server.max_mtu = mtu
        self.tasks = set()
        lab.peers.append(self)

    @property
    def rssi(self):
        return self.controller.rssi

    @rssi.setter
    def rssi(self, value):
        self.controller.rssi = value

    def later(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def change_address(self):
        """What a phone does every 15 minutes or so: another private address, for the next advertisement or link."""
        await self.device.power_off()
        BumblePeer.count += 1
        number = BumblePeer.count
        # Two most significant bits 01: a resolvable private address (Core 5.4, Vol 6, Part B, 1.3.2.2).
        self.address = Address(f"41:7A:00:00:{number >> 8 & 0xFF:02X}:{number & 0xFF:02X}")
        self.device.static_address = self.address
        await self.device.power_on()

    def vanish(self):
        """Out of range, or its battery is empty: no goodbye. The other side's link times out."""
        self.controller.fall_silent()

    async def close(self):
        for task in list(self.tasks):
            task.cancel()
        self.controller.fall_silent()
        self.controller.host = None
        if self.controller in self.lab.medium.controllers:
            self.lab.medium.remove_controller(self.controller)
