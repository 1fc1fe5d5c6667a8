# SPDX-License-Identifier: MIT
"""Bumble as a peripheral: hosts as they are met, the odd and the wrong ones included."""
import asyncio

from bumble import att
from bumble.core import UUID, AdvertisingData
from bumble.gatt import Characteristic, CharacteristicValue, Service

from .. import envelope
from .bumble_peer import BumblePeer

SERVICE = UUID(envelope.SERVICE)
MESSAGE = UUID(envelope.MESSAGE)


def answers(*messages, pause=0.05, on=None, cut=True):
    """A behaviour: after a request these messages, one notification each; `on` another characteristic than the last
    that was added, and whole whatever the MTU if not `cut`."""

    async def behave(host, connection, request):
        for message in messages:
            await asyncio.sleep(pause)
            host.notify(connection, message, on, cut)
            host.reach("answered")

    return behave


def splits(message, length):
    """Some hosts send what does not fit as several notifications, without any header."""
    return answers(*(message[start : start + length] for start in range(0, len(message), length)))


def refuses(code=envelope.APPLICATION_ERROR):
    """Older hosts reject with an ATT error on the write."""

    async def behave(host, connection, request):
        raise att.ATT_Error(error_code=att.ErrorCode(code))

    behave.before_response = True
    return behave


async def says_nothing(host, connection, request):
    pass


class Peripheral(BumblePeer):
    """`behave(host, connection, request)` runs after the write has been acknowledged, or before if it says so.
    `on_subscribe(host, connection)` runs before the subscription is acknowledged.
    `uuid_in`: where the service's UUID is advertised: "advertisement", "response" or None."""

    STEPS = ("connected", "subscribed", "written", "answered")

    def __init__(self, lab, behave=None, name="host", mtu=517, uuid_in="advertisement", on_subscribe=None):
        super().__init__(lab, name, mtu)
        self.local_name = name
        self.behave = behave or answers(envelope.handoff())
        self.on_subscribe = on_subscribe
        self.uuid_in = uuid_in
        self.requests = []
        self.connections = []
        self.reached = {step: asyncio.Event() for step in (*self.STEPS, "disconnected")}
        self.message = None
        self.device.on("connection", self._connected)

    def add_service(self, behave=None):
        """The kit's service once more; the first is added by `start` unless one was added before."""
        properties = Characteristic.Properties.WRITE | Characteristic.Properties.NOTIFY
        characteristic = Characteristic(MESSAGE, properties, Characteristic.WRITEABLE)
        self.behave_on(characteristic, behave)
        characteristic.on("subscription", lambda bearer, notify, indicate: self._subscribed(bearer, notify))
        self.device.add_service(Service(SERVICE, [characteristic]))
        self.message = characteristic
        return characteristic

    def behave_on(self, characteristic, behave):
        """What a write there is answered with; None: as everywhere."""
        characteristic.value = CharacteristicValue(
            write=lambda connection, value: self._written(connection, bytes(value), behave)
        )

    def add_extra_service(self, uuid, characteristics=3):
        read = Characteristic.Properties.READ
        self.device.add_service(
            Service(
                UUID(uuid),
                [
                    Characteristic(UUID(f"{0xFFE0 + number:04X}"), read, Characteristic.READABLE, bytes([number]))
                    for number in range(characteristics)
                ],
            )
        )

    async def start(self, interval=100):
        """Advertises every `interval` ms, and again after each link."""
        if self.message is None:
            self.add_service()
        await self.device.power_on()
        await self.advertise(interval)
        return self

    async def advertise(self, interval=100):
        flags = (AdvertisingData.FLAGS, bytes([6]))
        name = (AdvertisingData.COMPLETE_LOCAL_NAME, self.local_name.encode())
        uuid = (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(SERVICE))
        places = {
            "advertisement": ([flags, uuid], [name]),
            "response": ([flags, name], [uuid]),
            None: ([flags], [name]),
        }
        advertisement, response = places[self.uuid_in]
        await self.device.start_advertising(
            auto_restart=True,
            advertising_data=bytes(AdvertisingData(advertisement)),
            scan_response_data=bytes(AdvertisingData(response)),
            advertising_interval_min=interval,
            advertising_interval_max=interval,
        )

    def reach(self, step):
        self.reached[step].set()

    async def wait(self, step, timeout=25):
        try:
            await asyncio.wait_for(self.reached[step].wait(), self.lab.seconds(timeout))
        except asyncio.TimeoutError:
            raise AssertionError(f"{self.name} was never {step}") from None

    def notify(self, connection, value, characteristic=None, cut=True):
        """At once and in order, whether subscribed or not; cut at MTU-3, as nearly every stack does."""
        characteristic = characteristic or self.message
        if cut:
            value = value[: connection.att_mtu - 3]
        self.device.gatt_server.send_gatt_pdu(
            connection,
            bytes(att.ATT_Handle_Value_Notification(attribute_handle=characteristic.handle, attribute_value=value)),
        )

    def _connected(self, connection):
        self.connections.append(connection)
        connection.on("disconnection", lambda reason: self.reach("disconnected"))
        self.reach("connected")

    def _subscribed(self, bearer, notify):
        if notify:
            self.reach("subscribed")
            if self.on_subscribe is not None:
                self.on_subscribe(self, bearer)

    async def _written(self, connection, value, behave):
        self.requests.append(value)
        self.reach("written")
        behave = behave or self.behave
        if getattr(behave, "before_response", False):
            await behave(self, connection, value)
            return
        self.later(behave(self, connection, value))
