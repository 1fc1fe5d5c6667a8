# SPDX-License-Identifier: MIT
"""How our host ends."""
from lab.cases import case
from lab.peers.central import Central

from .host_centrals import another_is_served


@case("host/once")
async def _(lab):
    """--once: ends by itself, status 0, and leaves no advertisement"""
    host = await lab.host(more=("--once",)).start()
    await another_is_served(lab)
    await host.delivered()
    assert await host.ended() == 0
    assert await lab.bluez.active_instances("hci0") == 0


@case("host/max-joins", timeout=90)
async def _(lab):
    """--max-joins 2"""
    host = await lab.host(more=("--max-joins", "2")).start()
    await another_is_served(lab)
    await another_is_served(lab, Central.android)
    assert await host.ended() == 0


@case("host/time-out")
async def _(lab):
    """--once --timeout with nobody near: status 75, nothing left behind"""
    host = await lab.host(timeout=3, more=("--once",)).start()
    assert await host.ended() == 75
    assert await lab.bluez.active_instances("hci0") == 0


@case("host/terminated", core=True)
async def _(lab):
    """SIGTERM while a phone is connected: ends by it (143), and leaves nothing"""
    host = await lab.host().start()
    phone = Central.iphone(lab)
    await phone.go_to("subscribed")
    assert await host.stop() == 143
    assert await lab.bluez.active_instances("hci0") == 0
    await phone.leave()
