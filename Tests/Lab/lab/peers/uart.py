# SPDX-License-Identifier: MIT
"""Bumble as a device with a UART over GATT, a battery and a name plate: what `nearby device` talks to."""
import asyncio

from bumble import att
from bumble.core import UUID, AdvertisingData
from bumble.gatt import Characteristic, CharacteristicValue, Service

from .bumble_peer import BumblePeer

NORDIC = ("6E400001-B5A3-F393-E0A9-E50E24DCCA9E",) * 2 + (
    "6E400002-B5A3-F393-E0A9-E50E24DCCA9E",
    "6E400003-B5A3-F393-E0A9-E50E24DCCA9E",
)
#: FFE9 in FFE5 to write to, FFE4 in FFE0 to hear from.
SPLIT = ("FFE5", "FFE0", "FFE9", "FFE4")

FACTS = {
    "2A29": b"Acme",
    "2A24": b"M1",
    "2A25": b"0042",
    "2A27": b"rev B",
    "2A26": b"1.2.3",
    "2A23": bytes(range(1, 9)),
}


async def echo(device, line):
    """Answers each line with itself."""
    device.say(line + "\r\n")


class Uart(BumblePeer):
    """`behave(device, line)` runs for each line that is written. `channel`: service and characteristic for both ways,
    or one characteristic that is both."""

    def __init__(self, lab, behave=echo, name="Meter", mtu=247, channel=NORDIC):
        super().__init__(lab, name, mtu)
        self.local_name = name
        self.behave = behave
        self.channel = channel
        self.lines = []
        self.packets = []
        self.connection = None
        self.pending = b""
        self.subscribed = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.outgoing = None
        self.battery = None
        self.device.on("connection", self._connected)

    def _add_services(self):
        properties = Characteristic.Properties
        to_service, from_service, to_uuid, from_uuid = self.channel
        write = properties.WRITE | properties.WRITE_WITHOUT_RESPONSE
        both = to_uuid == from_uuid
        incoming = Characteristic(
            UUID(to_uuid),
            write | properties.NOTIFY if both else write,
            Characteristic.WRITEABLE,
            CharacteristicValue(write=self._written),
        )
        self.outgoing = (
            incoming if both else Characteristic(UUID(from_uuid), properties.NOTIFY, Characteristic.READABLE, b"")
        )
        self.outgoing.on("subscription", lambda bearer, notify, indicate: notify and self.subscribed.set())
        if to_service == from_service:
            members = [incoming] if both else [incoming, self.outgoing]
            self.device.add_service(Service(UUID(to_service), members))
        else:
            self.device.add_service(Service(UUID(to_service), [incoming]))
            self.device.add_service(Service(UUID(from_service), [self.outgoing]))
        self.battery = Characteristic(
            UUID("2A19"), properties.READ | properties.NOTIFY, Characteristic.READABLE, bytes([87])
        )
        self.device.add_service(Service(UUID("180F"), [self.battery]))
        facts = [
            Characteristic(UUID(uuid), properties.READ, Characteristic.READABLE, value) for uuid, value in FACTS.items()
        ]
        self.device.add_service(Service(UUID("180A"), facts))

    async def start(self, interval=100):
        """Advertises its name and its service every `interval` ms, and again after each link."""
        self._add_services()
        await self.device.power_on()
        service = UUID(self.channel[0])
        kind = (
            AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS
            if len(bytes(service)) == 2
            else AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS
        )
        advertisement = [(AdvertisingData.FLAGS, bytes([6])), (kind, bytes(service))]
        response = [(AdvertisingData.COMPLETE_LOCAL_NAME, self.local_name.encode())]
        await self.device.start_advertising(
            auto_restart=True,
            advertising_data=bytes(AdvertisingData(advertisement)),
            scan_response_data=bytes(AdvertisingData(response)),
            advertising_interval_min=interval,
            advertising_interval_max=interval,
        )
        return self

    def say(self, text):
        """In as many notifications as it takes."""
        data = text if isinstance(text, bytes) else text.encode()
        size = self.connection.att_mtu - 3
        for start in range(0, len(data), size):
            self.notify(self.outgoing, data[start : start + size])

    def notify(self, characteristic, value):
        self.device.gatt_server.send_gatt_pdu(
            self.connection,
            bytes(att.ATT_Handle_Value_Notification(attribute_handle=characteristic.handle, attribute_value=value)),
        )

    def _connected(self, connection):
        self.connection = connection
        self.pending = b""
        self.disconnected.clear()
        connection.on("disconnection", lambda reason: self.disconnected.set())

    def _written(self, connection, value):
        self.packets.append(bytes(value))
        self.pending += bytes(value)
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode()
            self.lines.append(text)
            self.later(self.behave(self, text))
