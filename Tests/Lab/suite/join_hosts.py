# SPDX-License-Identifier: MIT
"""Our client, in front of hosts written with other people's libraries, over the same bluetoothd."""
from lab.cases import SUBJECTS, case
from lab.peers.dbus_host import DBusHost
from lab.peers.library_hosts import BlessHost, BluezPeripheralHost

from .join_peripherals import expect

for name, host in (("dbus-fast", DBusHost), ("bless", BlessHost), ("bluez-peripheral", BluezPeripheralHost)):

    @case(f"join/{name}", core=name == "dbus-fast", subjects=SUBJECTS, timeout=75)
    async def _(lab, host=host):
        """A host in Python"""
        await host(lab).start()
        join = await lab.join().start()
        expect(await join.outcome(), "handoff")
