# SPDX-License-Identifier: MIT
"""played_bluez.py host|client ADDRESS [HANDOFFS]: plays org.bluez to one peer, message for message as bluetoothd 5.66 was
heard to talk in the lab (Tests/Lab, `--cost`), and tells what that costs the peer, a JSON object a line.

It is a script and no stack: the simulator (Sources/BlueZSimulator) says less than bluetoothd about a central's own objects
and its connection, and a host has to read all of it. Sockets block here, so that a time is that of the socket's data and
not of some event loop. Runs where dbus-fast is installed, whose codec it takes.
"""
import json
import sys
import time

from dbus_fast import MessageFlag, MessageType, Variant

from played_bus import Bus, Process, spent

BUS = "org.freedesktop.DBus"
PROPERTIES = "org.freedesktop.DBus.Properties"
MANAGER = "org.freedesktop.DBus.ObjectManager"
ADAPTER, DEVICE = "org.bluez.Adapter1", "org.bluez.Device1"
CHARACTERISTIC = "org.bluez.GattCharacteristic1"
ADVERTISEMENT = "org.bluez.LEAdvertisement1"
SERVICE_UUID = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
MESSAGE_UUID = "b2c3d4e5-f6a7-8901-bcde-f12345678901"
APP = "com.example.lab"
REQUEST = json.dumps({"type": "join_request", "protocolVersion": 1, "appId": APP}, separators=(",", ":")).encode()
HANDOFF = json.dumps({
    "type": "handoff", "protocolVersion": 1, "appId": APP, "sessionId": "550e8400-e29b-41d4-a716-446655440000",
    "payload": {"roomCode": "SWIFT42"}}, separators=(",", ":")).encode()
#: Seconds between two messages of bluetoothd's: each is a wake-up of its own, as on the air.
PACE = 0.003
#: Longer than a host waits before it advertises again.
SETTLED = 0.15
GENERIC = "0000{}-0000-1000-8000-00805f9b34fb"


class BlueZ:
    def __init__(self, address, adapter):
        self.bus = Bus(address)
        self.adapter = f"/org/bluez/{adapter}"
        self.awaited, self.replies = set(), {}
        self.objects = {
            "/org/bluez": {"org.bluez.AgentManager1": {}},
            self.adapter: {
                ADAPTER: {
                    "Address": Variant("s", "00:AA:01:00:00:42"), "AddressType": Variant("s", "public"),
                    "Name": Variant("s", "played"), "Alias": Variant("s", "played"), "Class": Variant("u", 0),
                    "Powered": Variant("b", True), "Discoverable": Variant("b", False),
                    "DiscoverableTimeout": Variant("u", 180), "Pairable": Variant("b", False),
                    "PairableTimeout": Variant("u", 0), "Discovering": Variant("b", False),
                    "UUIDs": Variant("as", [GENERIC.format(each) for each in ("1800", "1801", "180a")]),
                    "Modalias": Variant("s", "usb:v1D6Bp0246d0542"),
                    "Roles": Variant("as", ["central", "peripheral", "central-peripheral"]),
                    "ExperimentalFeatures": Variant("as", []),
                },
                "org.bluez.GattManager1": {},
                "org.bluez.LEAdvertisingManager1": {
                    "ActiveInstances": Variant("y", 0), "SupportedInstances": Variant("y", 5),
                    "SupportedIncludes": Variant("as", ["tx-power", "appearance", "local-name", "rsi"]),
                    "SupportedSecondaryChannels": Variant("as", ["1M", "2M", "Coded"]),
                },
            },
        }
        self.ask(BUS, "/org/freedesktop/DBus", BUS, "Hello")
        self.ask(BUS, "/org/freedesktop/DBus", BUS, "RequestName", "su", ["org.bluez", 4])

    # What is sent

    def ask(self, destination, path, interface, member, signature="", body=()):
        """Calls, and waits for the answer."""
        serial = self.call(destination, path, interface, member, signature, body)
        return self.answer(serial)

    def answer(self, serial):
        self.awaited.add(serial)
        self.until(lambda: serial in self.replies)
        self.awaited.remove(serial)
        return self.replies.pop(serial)

    def call(self, destination, path, interface, member, signature="", body=(), wants_reply=True):
        return self.bus.send(
            destination=destination, path=path, interface=interface, member=member, signature=signature,
            body=list(body), flags=MessageFlag.NONE if wants_reply else MessageFlag.NO_REPLY_EXPECTED)

    def reply(self, message, signature="", *body):
        if MessageFlag.NO_REPLY_EXPECTED not in message.flags:
                self.bus.send(destination=message.sender, message_type=MessageType.METHOD_RETURN,
                          reply_serial=message.serial, signature=signature, body=list(body))

    def fail(self, message, name, text):
        self.bus.send(destination=message.sender, message_type=MessageType.ERROR, reply_serial=message.serial,
                      error_name=name, signature="s", body=[text])

    def signal(self, path, interface, member, signature, *body):
        self.bus.send(message_type=MessageType.SIGNAL, path=path, interface=interface, member=member,
                      signature=signature, body=list(body))

    def changed(self, path, interface, properties, invalidated=()):
        self.objects[path][interface].update(properties)
        for name in invalidated:
            self.objects[path][interface].pop(name, None)
        self.signal(path, PROPERTIES, "PropertiesChanged", "sa{sv}as", interface, properties, list(invalidated))

    def added(self, path, interface, properties):
        self.objects[path] = {"org.freedesktop.DBus.Introspectable": {}, interface: properties, PROPERTIES: {}}
        self.signal("/", MANAGER, "InterfacesAdded", "oa{sa{sv}}", path, self.objects[path])

    # What is received

    def until(self, ready, seconds=10):
        """Reads, and answers, until something is so. What is read may itself make us wait, in between."""
        deadline = time.monotonic() + seconds
        while not ready():
            left = deadline - time.monotonic()
            found = self.bus.receive(left) if left > 0 else None
            if found is None:
                raise TimeoutError("the peer does not answer")
            self.take(*found)

    def rest(self, seconds):
        """Reads, and answers, for a time."""
        try:
            self.until(lambda: False, seconds)
        except TimeoutError:
            pass

    def take(self, message, stamp):
        if message.message_type is MessageType.METHOD_CALL:
            self.called(message)
        elif message.reply_serial in self.awaited:
            self.replies[message.reply_serial] = message

    def called(self, message):
        """The calls that any role answers."""
        path, body = message.path, message.body
        interfaces = self.objects.get(path, {})
        match message.member:
            case "GetManagedObjects":
                self.reply(message, "a{oa{sa{sv}}}", self.objects)
            case "Introspect":
                self.reply(message, "s", "<node/>")
            case "GetAll":
                self.reply(message, "a{sv}", interfaces.get(body[0], {}))
            case "Get":
                value = interfaces.get(body[0], {}).get(body[1])
                if value is None:
                    self.fail(message, f"{BUS}.Error.InvalidArgs", f"No such property '{body[1]}'")
                else:
                    self.reply(message, "v", value)
            case _:
                self.reply(message)


class HostRun(BlueZ):
    """Serves one application with one advertisement, and lets centrals come to it one after another."""

    application = advertisement = owner = value = None

    def called(self, message):
        match message.member:
            case "RegisterApplication":
                self.owner, root = message.sender, message.body[0]
                rule = f"type='signal',sender='{self.owner}',interface='{PROPERTIES}'"
                self.ask(BUS, "/org/freedesktop/DBus", BUS, "AddMatch", "s", [rule])
                reply = self.ask(self.owner, root, MANAGER, "GetManagedObjects")
                self.application = {
                    interfaces[CHARACTERISTIC]["UUID"].value: (path, interfaces[CHARACTERISTIC])
                    for path, interfaces in reply.body[0].items() if CHARACTERISTIC in interfaces}
                self.changed(self.adapter, ADAPTER, {"UUIDs": Variant("as", [SERVICE_UUID])})
                self.reply(message)
            case "RegisterAdvertisement":
                path = message.body[0]
                self.ask(message.sender, path, MANAGER, "GetManagedObjects")
                self.ask(message.sender, path, PROPERTIES, "GetAll", "s", [ADVERTISEMENT])
                self.tell_power(path)
                self.changed(self.adapter, "org.bluez.LEAdvertisingManager1", {
                    "ActiveInstances": Variant("y", 1), "SupportedInstances": Variant("y", 4)})
                self.advertisement = path
                self.reply(message)
            case _:
                super().called(message)

    def take(self, message, stamp):
        super().take(message, stamp)
        if message.member == "PropertiesChanged":
            if "Value" in message.body[1]:
                self.value = (bytes(message.body[1]["Value"].value), stamp)
            elif message.path == self.advertisement:
                # Whatever has changed, the advertisement is given again, and its power told.
                self.tell_power(self.advertisement)

    def tell_power(self, path):
        self.ask(self.owner or "org.bluez", path, PROPERTIES, "Set", "ssv", [ADVERTISEMENT, "TxPower", Variant("n", 7)])

    def link(self, number):
        """A central comes, subscribes, writes, is answered and goes. Returns the microseconds to the answer."""
        address = f"C0:FF:EE:00:{number // 256:02X}:{number % 256:02X}"
        device = f"{self.adapter}/dev_{address.replace(':', '_')}"
        self.added(device, DEVICE, {
            "Address": Variant("s", address), "AddressType": Variant("s", "random"), "Alias": Variant("s", address),
            "Paired": Variant("b", False), "Bonded": Variant("b", False), "Trusted": Variant("b", False),
            "Blocked": Variant("b", False), "LegacyPairing": Variant("b", False), "Connected": Variant("b", True),
            "UUIDs": Variant("as", []), "Adapter": Variant("o", self.adapter), "ServicesResolved": Variant("b", False)})
        self.rest(SETTLED)
        self.rest(PACE)
        # bluetoothd, a client of whoever connects, looks the central's own services over.
        service = f"{device}/service0006"
        self.added(service, "org.bluez.GattService1", {
            "UUID": Variant("s", GENERIC.format("1801")), "Device": Variant("o", device),
            "Primary": Variant("b", True), "Includes": Variant("ao", [])})
        for place, uuid in (("char0007", "2a05"), ("char000a", "2b29"), ("char000c", "2b2a")):
            self.rest(PACE)
            self.added(f"{service}/{place}", CHARACTERISTIC, {
                "UUID": Variant("s", GENERIC.format(uuid)), "Service": Variant("o", service),
                "Value": Variant("ay", b""), "Notifying": Variant("b", False), "Flags": Variant("as", ["read"]),
                "MTU": Variant("q", 517)})
        self.rest(PACE)
        self.added(f"{service}/char0007/desc0009", "org.bluez.GattDescriptor1", {
            "UUID": Variant("s", GENERIC.format("2902")), "Characteristic": Variant("o", f"{service}/char0007"),
            "Value": Variant("ay", b"")})
        self.rest(PACE)
        self.changed(device, DEVICE, {"UUIDs": Variant("as", [GENERIC.format(each) for each in ("1800", "1801")])})
        self.rest(PACE)
        self.changed(device, DEVICE, {"ServicesResolved": Variant("b", True)})
        self.rest(PACE)
        path, properties = self.application[MESSAGE_UUID]
        options = {"device": Variant("o", device), "link": Variant("s", "LE"), "mtu": Variant("q", 517)}
        if "NotifyAcquired" in properties:
            self.ask(self.owner, path, CHARACTERISTIC, "AcquireNotify", "a{sv}", [options])
        self.call(self.owner, path, CHARACTERISTIC, "StartNotify", wants_reply=False)
        self.rest(PACE * 3)
        began = time.perf_counter()
        serial = self.call(self.owner, path, CHARACTERISTIC, "WriteValue", "aya{sv}", [REQUEST, options])
        self.awaited.add(serial)
        self.until(lambda: self.value is not None)
        value, ended = self.value
        self.value = None
        if self.answer(serial).message_type is MessageType.ERROR or not value.startswith(b'{"type":"handoff"'):
            raise ValueError(f"no handoff: {value}")
        self.rest(PACE * 3)
        self.changed(device, DEVICE, {"ServicesResolved": Variant("b", False), "Connected": Variant("b", False)})
        self.call(self.owner, path, CHARACTERISTIC, "StopNotify", wants_reply=False)
        self.rest(SETTLED)
        return (ended - began) * 1e6

    def run(self, handoffs):
        while self.advertisement is None or self.application is None:
            self.rest(0.05)
        self.rest(1)
        reply = self.ask(BUS, "/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", "s", [self.owner])
        process = Process(reply.body[0])
        print(json.dumps({"idle": process.memory()}), flush=True)
        for number in range(handoffs):
            before = process.snapshot()
            gap = self.link(number)
            print(json.dumps({"gap_us": gap, **spent(before, process.snapshot())}), flush=True)


class ClientRun(BlueZ):
    """Has one host in the air, and lets one client after another find and join it."""

    HOST = "C0:DE:00:00:00:42"

    def __init__(self, address, adapter):
        super().__init__(address, adapter)
        self.device = f"{self.adapter}/dev_{self.HOST.replace(':', '_')}"
        self.service = f"{self.device}/service000e"
        self.message = f"{self.service}/char000f"
        self.pid = self.process = self.before = None
        self.calls = []

    def called(self, message):
        if message.member == "GetManagedObjects":
            self.calls = []
        self.calls.append(message.member)
        match message.member:
            case "StartDiscovery":
                reply = self.ask(
                    BUS, "/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", "s", [message.sender])
                self.pid = reply.body[0]
                self.process = Process(self.pid)
                self.before = self.process.snapshot()
                self.reply(message)
                self.changed(self.adapter, ADAPTER, {"Discovering": Variant("b", True)})
                self.rest(PACE * 10)
                self.added(self.device, DEVICE, {
                    "Address": Variant("s", self.HOST), "AddressType": Variant("s", "random"),
                    "Name": Variant("s", "LABHOST"), "Alias": Variant("s", "LABHOST"), "Paired": Variant("b", False),
                    "Bonded": Variant("b", False), "Trusted": Variant("b", False), "Blocked": Variant("b", False),
                    "LegacyPairing": Variant("b", False), "RSSI": Variant("n", -50), "Connected": Variant("b", False),
                    "UUIDs": Variant("as", [SERVICE_UUID]), "Adapter": Variant("o", self.adapter),
                    "ServicesResolved": Variant("b", False), "AdvertisingFlags": Variant("ay", b"\x06")})
            case "StopDiscovery":
                if self.device in self.objects:
                    self.changed(self.device, DEVICE, {}, ["RSSI"])
                self.changed(self.adapter, ADAPTER, {"Discovering": Variant("b", False)})
                self.reply(message)
            case "Connect":
                self.rest(PACE * 10)
                self.changed(self.device, DEVICE, {"Connected": Variant("b", True)})
                self.rest(PACE * 10)
                self.resolve()
                self.reply(message)
            case "StartNotify":
                self.changed(self.message, CHARACTERISTIC, {"Notifying": Variant("b", True)})
                self.reply(message)
            case "WriteValue":
                self.reply(message)
                self.rest(PACE)
                self.changed(self.message, CHARACTERISTIC, {"Value": Variant("ay", HANDOFF)})
            case "StopNotify":
                self.changed(self.message, CHARACTERISTIC, {"Notifying": Variant("b", False)})
                self.reply(message)
            case "Disconnect":
                self.rest(PACE * 10)
                after = self.process.snapshot()
                print(json.dumps({
                    "pid": self.pid, **spent(self.before, after), "peak_kb": after["peak_kb"], "calls": self.calls}), flush=True)
                self.changed(self.message, CHARACTERISTIC, {"Notifying": Variant("b", False)})
                self.changed(self.device, DEVICE, {
                    "ServicesResolved": Variant("b", False), "Connected": Variant("b", False)})
                # What it was told counts for it alone; the next one finds a device that is new.
                self.objects = {path: each for path, each in self.objects.items() if not path.startswith(self.device)}
                self.reply(message)
            case _:
                super().called(message)

    def resolve(self):
        other = f"{self.device}/service0006"
        for path, uuid in ((other, GENERIC.format("1801")), (self.service, SERVICE_UUID)):
            self.rest(PACE)
            self.added(path, "org.bluez.GattService1", {
                "UUID": Variant("s", uuid), "Device": Variant("o", self.device), "Primary": Variant("b", True),
                "Includes": Variant("ao", [])})
        for path, service, uuid, flags in (
            (f"{other}/char0007", other, GENERIC.format("2a05"), ["indicate"]),
            (self.message, self.service, MESSAGE_UUID, ["write", "notify"]),
        ):
            self.rest(PACE)
            self.added(path, CHARACTERISTIC, {
                "UUID": Variant("s", uuid), "Service": Variant("o", service), "Value": Variant("ay", b""),
                "Notifying": Variant("b", False), "Flags": Variant("as", flags), "MTU": Variant("q", 517)})
            self.rest(PACE)
            self.added(f"{path}/desc0010", "org.bluez.GattDescriptor1", {
                "UUID": Variant("s", GENERIC.format("2902")), "Characteristic": Variant("o", path),
                "Value": Variant("ay", b"")})
        self.rest(PACE)
        self.changed(self.device, DEVICE, {
            "UUIDs": Variant("as", [GENERIC.format("1800"), GENERIC.format("1801"), SERVICE_UUID])})
        self.changed(self.device, DEVICE, {"ServicesResolved": Variant("b", True)})

    def run(self):
        while True:
            self.rest(60)


def main():
    role, address = sys.argv[1:3]
    player = HostRun(address, "hci0") if role == "host" else ClientRun(address, "hci1")
    print(json.dumps({"playing": role}), flush=True)
    if role == "host":
        player.run(int(sys.argv[3]))
    else:
        player.run()


try:
    main()
except (ConnectionError, KeyboardInterrupt):
    pass
