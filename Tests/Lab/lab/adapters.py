# SPDX-License-Identifier: MIT
"""Controllers behind /dev/vhci: to the kernel, adapters that can be plugged in and pulled out."""
import asyncio
import os
import time

from .radio import LabController

VENDOR_PACKET = 0xFF  # linux/drivers/bluetooth/hci_vhci.c: creates the device, and is answered with its index
#: Seconds within which an adapter has its index back. The kernel gives the lowest that is free, and one stays taken while
#: anybody still holds the device that is gone (linux/net/bluetooth/hci_core.c, hci_release_dev).
INDEX_LIMIT = 20


class Adapter:
    """One such adapter. `index` is the kernel's: hci<index>, the same each time that it is plugged in."""

    def __init__(self, medium, address, recorder):
        self.medium = medium
        self.address = address
        self.recorder = recorder
        self.controller = None
        self.index = None
        self._file = None

    @property
    def name(self):
        return f"hci{self.index}"

    @property
    def plugged(self):
        return self._file is not None

    async def plug(self):
        """Raises TimeoutError if the index that it had is not to be had again."""
        had, began = self.index, time.monotonic()
        while True:
            await self._create()
            if had in (None, self.index):
                return self
            got = self.name
            self.unplug()
            self.index = had
            if time.monotonic() - began > INDEX_LIMIT:
                raise TimeoutError(f"plugged in again, {self.name} is {got}: somebody still holds the old one")
            await asyncio.sleep(0.2)

    async def _create(self):
        self._file = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK)
        os.write(self._file, bytes([VENDOR_PACKET, 0]))
        loop = asyncio.get_running_loop()
        created = loop.create_future()
        loop.add_reader(self._file, self._readable, created)
        await asyncio.wait_for(created, 10)

    def unplug(self):
        """As if pulled out: the kernel's device goes, peers lose their links by time-out."""
        if self._file is None:
            return
        asyncio.get_running_loop().remove_reader(self._file)
        self.controller.fall_silent()
        self.controller.host = None
        self.medium.remove_controller(self.controller)
        self.controller = None
        os.close(self._file)
        self._file = None

    def _readable(self, created):
        # The kernel hands out one whole packet a read.
        try:
            packet = os.read(self._file, 4096)
        except BlockingIOError:
            return
        if packet[:1] == bytes([VENDOR_PACKET]):
            # Here and not in plug(): the kernel's first command may be read before that resumes.
            self.index = packet[2] | packet[3] << 8
            self.controller = LabController(
                self.name, self.medium, host_sink=self, public_address=self.address, recorder=self.recorder
            )
            if not created.done():
                created.set_result(None)
        elif self.controller is not None:
            self.controller.on_packet(packet)

    def on_packet(self, packet):
        """From the controller (it sees us as its host)."""
        if self._file is None:
            return
        try:
            os.write(self._file, packet)
        except OSError:
            pass  # the kernel is taking the adapter down: a real controller's events are lost then, too
