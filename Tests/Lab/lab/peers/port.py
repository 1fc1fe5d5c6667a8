# SPDX-License-Identifier: MIT
"""The Python port of the extended client (Tests/Python) on Bumble: a foreign phone that speaks the extended profile."""
import asyncio

from bumble import att
from bumble.core import UUID
from extended_join import BleakLink
from extended_search import CHANNEL, HELLO, Link, Refused, Search

from .. import envelope
from .bleak_client import BleakJoin
from .central import Central, on_the_link


class PortCentral(Central):
    """`read_hello`, `subscribe_channel` and `write_channel` are the steps of the extended profile."""

    hello = channel = None

    @classmethod
    def phone(cls, lab, mtu):
        return cls(lab, f"port-{mtu}", mtu, asks_mtu=mtu > 23)

    @on_the_link
    async def discover(self):
        await super().discover()
        for name, uuid in (("hello", HELLO), ("channel", CHANNEL)):
            found = self.peer.get_characteristics_by_uuid(UUID(uuid))
            setattr(self, name, found[0] if found else None)
        if self.channel is not None:
            await self.peer.discover_descriptors(self.channel)

    @on_the_link
    async def read_hello(self):
        return bytes(await self.hello.read_value())

    @on_the_link
    async def subscribe_channel(self, notified):
        await self.peer.subscribe(self.channel, lambda value: notified(bytes(value)))

    @on_the_link
    async def write_channel(self, frame):
        try:
            await self.channel.write_value(frame, with_response=True)
        except att.ATT_Error as error:
            raise Refused(int(error.error_code)) from None

    def search(self, before_writing=None, stays=False, **options):
        """A join that has not begun."""

        async def dial():
            await self.connect()
            await self.discover()
            return BumbleLink(self, before_writing, stays)

        return PortSearch(self.lab, self.name, dial, **options)


class BumbleLink(Link):
    """`before_writing` is awaited once, after the subscription. With `stays` the link outlives the search."""

    def __init__(self, central, before_writing=None, stays=False):
        self.central, self.before_writing, self.stays = central, before_writing, stays
        self.mtu = central.connection.att_mtu

    async def hello(self):
        if self.central.hello is None or self.central.channel is None:
            return None
        return await self.central.read_hello()

    async def subscribe(self, notified, lost):
        self.central.connection.on("disconnection", lambda reason: lost())
        await self.central.subscribe_channel(notified)

    async def write(self, frame):
        if self.before_writing is not None:
            waiting, self.before_writing = self.before_writing, None
            await waiting()
        await self.central.write_channel(frame)

    async def close(self):
        if not self.stays:
            await self.central.leave()


class PortSearch(Search):
    """A search of the lab's: as slow as the machine is, with an end of its own."""

    def __init__(self, lab, name, dial, app=envelope.APP, **options):
        super().__init__(dial, app, patience=lab.patience, **options)
        self.lab, self.name = lab, name

    async def run(self, timeout=40):
        try:
            return await asyncio.wait_for(super().run(), self.lab.seconds(timeout))
        except asyncio.TimeoutError:
            raise AssertionError(f"{self.name} has not ended within {timeout} s") from None


class BleakPort:
    """The same port on bleak, over the guest's own bluetoothd."""

    def __init__(self, lab, adapter="hci1"):
        self.lab, self.adapter = lab, adapter

    async def dial(self):
        return await BleakLink.open(await BleakJoin(self.lab, self.adapter).find(), self.adapter)

    def search(self, **options):
        return PortSearch(self.lab, "the port on bleak", self.dial, **options)
