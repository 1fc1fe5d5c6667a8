# SPDX-License-Identifier: MIT
"""Controllers behind /dev/vhci: to the kernel, adapters that can be plugged in and pulled out."""
import asyncio
import os

from .radio import LabController

VENDOR_PACKET = 0xFF  # linux/drivers/bluetooth/hci_vhci.c: creates the device, and is answered with its index


class Adapter:
    """One such adapter. `index` is the kernel's: hci<index>."""

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
        self._file = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK)
        os.write(self._file, bytes([VENDOR_PACKET, 0]))
        loop = asyncio.get_running_loop()
        created = loop.create_future()
        loop.add_reader(self._file, self._readable, created)
        await asyncio.wait_for(created, 10)
        return self

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
