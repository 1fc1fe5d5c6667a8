# SPDX-License-Identifier: MIT
"""Bumble as a central: the phone that joins. A case takes it through the steps one by one, or calls `join`."""
import asyncio
import functools

from bumble import smp
from bumble.core import UUID, AdvertisingData
from bumble.device import Peer
from bumble.gatt import Characteristic, Service

from .. import envelope, trace
from .bumble_peer import BumblePeer

SERVICE = UUID(envelope.SERVICE)
MESSAGE = UUID(envelope.MESSAGE)


def on_the_link(step):
    """Bumble cancels whoever waits for an answer when the link goes; here that is an error like any other."""

    @functools.wraps(step)
    async def run(self, *arguments, **more):
        try:
            return await step(self, *arguments, **more)
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                raise
            raise ConnectionError(f"{self.name} lost its link while it would {step.__name__}") from None

    return run


class NotServed(AssertionError):
    """Nobody was found, nothing came in time: what a phone's user tries again. Never anything that was received."""


class Central(BumblePeer):
    """`heard` is every value that it was ever notified of, `mtu_used` what was agreed on when it last wrote."""

    STEPS = ("connected", "subscribed", "written", "answered")

    def __init__(self, lab, name="central", mtu=185, asks_mtu=True):
        super().__init__(lab, name, mtu)
        self.asks_mtu = asks_mtu
        self.connection = None
        self.peer = None
        self.message = None
        self.received = asyncio.Queue()
        self.heard = []
        self.mtu_used = None
        self.lost = asyncio.Event()
        self.on_pairing = None
        self.pairing_asked = asyncio.Event()

    @classmethod
    def iphone(cls, lab):
        """MTU 185, and services of its own that bluetoothd discovers in turn."""
        central = cls(lab, "iPhone", 185)
        read = Characteristic.Properties.READ
        for service, characteristic, value in (
            ("180F", "2A19", bytes([80])),  # battery
            ("180A", "2A29", b"Apple Inc."),  # device information
            ("1805", "2A2B", bytes(10)),  # current time
        ):
            central.device.add_service(
                Service(UUID(service), [Characteristic(UUID(characteristic), read, Characteristic.READABLE, value)])
            )
        return central

    @classmethod
    def guarded(cls, lab, on_pairing):
        """A phone whose battery level wants authentication. bluetoothd reads it, is refused, and asks for pairing:
        the prompt of bluez/bluez#38. The user "refuses", "accepts", or (None) leaves it open."""
        central = cls(lab, "iPhone", 185)
        guarded = Characteristic.READABLE | Characteristic.READ_REQUIRES_AUTHENTICATION
        level = Characteristic(UUID("2A19"), Characteristic.Properties.READ, guarded, bytes([80]))
        central.device.add_service(Service(UUID("180F"), [level]))
        central.on_pairing = on_pairing
        return central

    def _pairing_requested(self, connection):
        self.pairing_asked.set()
        if self.on_pairing == "accepts":
            self.later(self._pair(connection))
        elif self.on_pairing == "refuses":
            failed = smp.SMP_Pairing_Failed_Command(reason=smp.ErrorCode.PAIRING_NOT_SUPPORTED)
            self.device.smp_manager.send_command(connection, failed)

    async def _pair(self, connection):
        try:
            await connection.pair()
        except Exception as error:  # the exchange must come through either way
            self.lab.note(f"pairing failed: {type(error).__name__}")

    @classmethod
    def android(cls, lab, mtu=517):
        """Asks for the largest MTU there is, unless its app never asked (23)."""
        return cls(lab, "Android", mtu, asks_mtu=mtu > 23)

    async def find(self, name=None, timeout=20):
        """Scans for the service, and returns the advertisement's address."""
        found = asyncio.get_running_loop().create_future()

        def heard(advertisement):
            data = advertisement.data
            uuids = data.get_all(AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS)
            named = data.get(AdvertisingData.COMPLETE_LOCAL_NAME)
            if any(SERVICE in each for each in uuids) and name in (None, named) and not found.done():
                found.set_result(advertisement.address)

        if not self.device.powered_on:
            await self.device.power_on()
        self.device.on("advertisement", heard)
        await self.device.start_scanning(filter_duplicates=False)
        try:
            return await asyncio.wait_for(found, self.lab.seconds(timeout))
        except asyncio.TimeoutError:
            raise NotServed(f"{self.name} finds no host that advertises the service") from None
        finally:
            self.device.remove_listener("advertisement", heard)
            await self.device.stop_scanning()

    @on_the_link
    async def connect(self, timeout=20):
        """Finds the host and connects, then exchanges the MTU. Bumble gives up on its own before `timeout` does."""
        address = await self.find(timeout=timeout)
        self.lost.clear()
        self.connection = await self.device.connect(address, timeout=self.lab.seconds(timeout))
        connection = self.connection
        connection.on("disconnection", lambda reason: self.lost.set())
        connection.on("security_request", lambda request: self._pairing_requested(connection))
        self.peer = Peer(self.connection)
        if self.asks_mtu:
            await self.peer.request_mtu(self.mtu)

    @on_the_link
    async def lower_mtu(self, mtu):
        """Asks once more, for less. Nobody should (Core 5.4, Vol 3, Part F, 3.4.2.1), and Android lets its apps."""
        self.device.gatt_server.max_mtu = mtu
        self.peer.gatt_client.mtu_exchange_done = False
        await self.peer.request_mtu(mtu)

    @on_the_link
    async def discover(self):
        """Everything, as both phone platforms do when an app asks for all services."""
        await self.peer.discover_services()
        for service in self.peer.services:
            await service.discover_characteristics()
        found = self.peer.get_characteristics_by_uuid(MESSAGE)
        if not found:
            raise NotServed(f"{self.name} does not find the message characteristic")
        self.message = found[0]
        await self.peer.discover_descriptors(self.message)

    @on_the_link
    async def subscribe(self):
        await self.peer.subscribe(self.message, self._notified)

    def _notified(self, value):
        self.heard.append(bytes(value))
        self.received.put_nowait(bytes(value))

    @on_the_link
    async def write(self, request=None):
        self.mtu_used = self.connection.att_mtu
        await self.message.write_value(envelope.join_request() if request is None else request, with_response=True)

    async def answer(self, timeout=12):
        try:
            value = await asyncio.wait_for(self.received.get(), self.lab.seconds(timeout))
        except asyncio.TimeoutError:
            raise NotServed(f"{self.name} got no answer within {timeout} s") from None
        return envelope.decode(value)

    async def go_to(self, step):
        """Up to and with that step. For "written" the request has reached the host's adapter, and no more."""
        await self.connect()
        if step == "connected":
            return
        await self.discover()
        await self.subscribe()
        if step == "subscribed":
            return
        if step == "written":
            there = trace.arrival(trace.WRITE_REQUEST, self.message.handle, self.name)
            async with self.lab.recorder.until(there, self.lab.seconds(12)):
                self.later(self._write_and_forget())
            return
        await self.write()
        await self.answer()

    async def _write_and_forget(self):
        try:
            await self.write()
        except Exception:  # the fault that the case is about
            pass

    async def join(self, request=None):
        """A whole exchange; returns the answer."""
        await self.connect()
        await self.discover()
        await self.subscribe()
        await self.write(request)
        answer = await self.answer()
        await self.leave()
        return answer

    async def leave(self):
        if self.connection is not None and not self.lost.is_set():
            await self.connection.disconnect()
        self.connection = None
