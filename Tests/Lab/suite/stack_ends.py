# SPDX-License-Identifier: MIT
"""What a bluetoothd leaves behind when it is killed, and when it is terminated. No code of ours runs here."""
import asyncio
import signal

from lab.bluez import DEVICE
from lab.cases import SUBJECTS, case
from lab.peers.bleak_client import BleakJoin
from lab.peers.central import Central
from lab.peers.dbus_host import DBusHost
from lab.peers.peripheral import Peripheral, says_nothing

REMOTE_USER, POWER_OFF = 0x13, 0x15  # HCI reasons


class Stopwatch:
    def __init__(self, lab):
        self.lab = lab
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()

    def between(self, least, most, what):
        """An upper limit is stretched for a slow machine, a lower one is not."""
        took = self.loop.time() - self.began
        self.lab.note(f"{what} after {took:.1f} s")
        assert least <= took <= self.lab.seconds(most), f"{what} after {took:.1f} s, not {least} to {most} s"


def loss_of(phone):
    """The reason that the phone's link ends for."""
    reason = asyncio.get_running_loop().create_future()
    phone.connection.on("disconnection", lambda code: reason.done() or reason.set_result(code))
    return reason


async def shows(lab, path, connected, limit=10):
    """Waits until bluetoothd shows the device as connected, or not; it never shows its services."""
    seen = None
    for _ in range(int(lab.seconds(limit) * 10)):
        seen = (await lab.bluez.devices()).get(path, {})
        assert not seen.get("ServicesResolved"), seen
        if seen.get("Connected", False) == connected:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{path}: {seen}")


async def unanswered(asking, what):
    """What a phone asks is not answered as long as the link is up."""
    try:
        await asking
    except (ConnectionError, asyncio.TimeoutError):
        return
    raise AssertionError(f"{what} was answered")


@case("stack/bluetoothd-killed", bugs=("project-chip/connectedhomeip#32847",), subjects=SUBJECTS)
async def _(lab):
    """The server hears no StopNotify; everything is to be registered again"""
    host = await DBusHost(lab).start()
    await Central.iphone(lab).go_to("subscribed")
    await lab.restart_bluetoothd()
    assert not host.seen("unsubscribed")
    assert await lab.bluez.active_instances("hci0") == 0
    await host.register()
    await Central.android(lab).join()


@case("stack/killed-host", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """bluetoothd is killed with a phone subscribed: its link stays 4 s and nobody answers on it; the advertisement
    stays on the air until the next bluetoothd, which shows the phone as connected"""
    host = await DBusHost(lab).start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    await host.advertise_again()
    [path] = await lab.bluez.devices()
    lost = loss_of(phone)
    watch = Stopwatch(lab)
    await lab.bluetoothd.end()
    writing = asyncio.ensure_future(unanswered(phone.write(), "the write"))
    await Central.android(lab).find()
    await lab.start_bluetoothd()
    await shows(lab, path, True)
    assert not lab.adapter("hci0").controller.advertises
    assert await asyncio.wait_for(lost, lab.seconds(10)) == REMOTE_USER
    watch.between(3, 6, "the link's end")
    await writing
    await shows(lab, path, False)
    assert not host.seen("unsubscribed") and not host.seen("released") and not host.seen("written")


@case("stack/killed-and-connected-to", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """A phone that connects while there is no bluetoothd is connected to nobody, for 4 s"""
    await DBusHost(lab).start()
    await lab.bluetoothd.end()
    phone = Central(lab, asks_mtu=False)
    await phone.connect()
    watch = Stopwatch(lab)
    lost = loss_of(phone)
    asking = asyncio.ensure_future(unanswered(asyncio.wait_for(phone.lower_mtu(100), lab.seconds(15)), "the MTU"))
    assert await asyncio.wait_for(lost, lab.seconds(10)) == REMOTE_USER
    watch.between(3, 6, "the link's end")
    await asking


@case("stack/killed-client", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """bluetoothd is killed while it is a client: its link stays 2 s, and the next bluetoothd shows it as connected and
    answers Connect with success"""
    peer = Peripheral(lab, says_nothing)
    await peer.start()
    join = BleakJoin(lab)
    await join.connect()
    await join.subscribe()
    [path] = await lab.bluez.devices()
    watch = Stopwatch(lab)
    await lab.bluetoothd.end()
    await asyncio.sleep(0.3)
    await lab.start_bluetoothd()
    await shows(lab, path, True)
    await lab.bluez.call(path, DEVICE, "Connect")
    await lab.until(lambda: not peer.device.connections, "the link's end")
    watch.between(1, 4, "the link's end")
    await shows(lab, path, False)


@case("stack/terminated", subjects=SUBJECTS, timeout=90)
async def _(lab):
    """bluetoothd ends by SIGTERM: StopNotify and Release come, the link ends at once, nothing stays on the air"""
    host = await DBusHost(lab).start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    await host.advertise_again()
    lost = loss_of(phone)
    await lab.bluetoothd.end(signal.SIGTERM)
    assert await asyncio.wait_for(lost, lab.seconds(2)) in (REMOTE_USER, POWER_OFF)
    await lab.until(lambda: host.seen("unsubscribed") and host.seen("released"), "StopNotify and Release", 2)
    assert not lab.adapter("hci0").controller.advertises
