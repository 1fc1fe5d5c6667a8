# SPDX-License-Identifier: MIT
"""`nearby device`, in front of a Bumble device with a UART, a battery and a name plate."""
import asyncio

from lab.cases import case
from lab.nearby import NearbyDevice
from lab.peers.uart import FACTS, NORDIC, SPLIT, Uart

LONG = "0123456789" * 40


async def conversation(lab, device, *lines, more=()):
    """The console's lines that the device has said, for these that were typed."""
    console = await NearbyDevice(lab, "console", "--device", device.local_name, *more).start()
    await console.event("connected")
    for line in lines:
        await console.type(line)
    said = [(await console.event("line", count=number + 1))["text"] for number in range(len(lines))]
    await console.end_input()
    status = await console.exit()
    assert status == 0, f"exit status {status}{console.tail()}"
    return said


@case("device/console", core=True, timeout=75)
async def _(lab):
    """A conversation with a Nordic UART, and the link is down at its end"""
    device = await Uart(lab).start()
    said = await conversation(lab, device, "hello", "what is the time", LONG)
    assert said == ["hello", "what is the time", LONG], said
    await asyncio.wait_for(device.disconnected.wait(), lab.seconds(10))
    assert device.lines == said, device.lines


@case("device/console-mtu-23", timeout=75)
async def _(lab):
    """The smallest MTU: lines go and come in pieces of 20 bytes"""
    device = await Uart(lab, mtu=23).start()
    said = await conversation(lab, device, LONG)
    assert said == [LONG], said
    assert max(map(len, device.packets)) <= 20, device.packets


@case("device/console-ffe0", timeout=75)
async def _(lab):
    """One characteristic for both directions, as HM-10 has it"""
    device = await Uart(lab, channel=("FFE0", "FFE0", "FFE1", "FFE1")).start()
    assert await conversation(lab, device, "AT", more=("--profile", "ffe0")) == ["AT"]


@case("device/console-ffe5", timeout=75)
async def _(lab):
    """Written to in one service, heard from in another; found without a profile being named"""
    device = await Uart(lab, channel=SPLIT).start()
    assert await conversation(lab, device, "AT") == ["AT"]


@case("device/console-chatty", timeout=75)
async def _(lab):
    """Fifty lines at once, cut anywhere, arrive whole and in order"""

    async def behave(device, line):
        text = "".join(f"line {number}\r\n" for number in range(50)).encode()
        for start in range(0, len(text), 7):
            device.say(text[start : start + 7])

    device = await Uart(lab, behave).start()
    console = await NearbyDevice(lab, "console", "--device", device.local_name).start()
    await console.event("connected")
    await console.type("go")
    await console.event("line", count=50)
    said = [event["text"] for event in console.events if event["event"] == "line"]
    assert said == [f"line {number}" for number in range(50)], said
    await console.end_input()
    assert await console.exit() == 0


@case("device/console-lost", timeout=75)
async def _(lab):
    """A device that vanishes ends the console with a typed error"""
    device = await Uart(lab).start()
    console = await NearbyDevice(lab, "console", "--device", device.local_name).start()
    await console.event("connected")
    device.vanish()
    error = await console.event("error", timeout=40)
    assert error["code"] == "disconnected", error
    assert await console.exit() == error["exitCode"]


@case("device/console-reconnects", timeout=90)
async def _(lab):
    """A device that ends the link is connected to again, and the conversation goes on"""
    device = await Uart(lab).start()
    console = await NearbyDevice(lab, "console", "--device", device.local_name, "--reconnect", "5").start()
    await console.event("connected")
    device.subscribed.clear()
    await device.connection.disconnect()
    await console.event("reconnecting")
    await console.event("connected", count=2, timeout=40)
    await asyncio.wait_for(device.subscribed.wait(), lab.seconds(20))
    await console.type("again")
    assert (await console.event("line"))["text"] == "again"
    await console.end_input()
    assert await console.exit() == 0


@case("device/info", core=True, timeout=75)
async def _(lab):
    """What a device says about itself (180A, 180F)"""
    device = await Uart(lab).start()
    info = await NearbyDevice(lab, "info", "--device", device.local_name).start()
    facts = await info.event("info")
    assert await info.exit() == 0
    expected = {
        "manufacturer": FACTS["2A29"].decode(),
        "model": FACTS["2A24"].decode(),
        "serialNumber": FACTS["2A25"].decode(),
        "hardwareRevision": FACTS["2A27"].decode(),
        "firmwareRevision": FACTS["2A26"].decode(),
        "systemId": FACTS["2A23"].hex(),
        "batteryLevel": 87,
    }
    found = {key: facts.get(key) for key in expected}
    assert found == expected, found


@case("device/services", timeout=75)
async def _(lab):
    """The GATT tree, with the names of the standard UUIDs"""
    device = await Uart(lab).start()
    process = await NearbyDevice(lab, "services", "--device", device.local_name).start()
    services = {service["uuid"]: service for service in (await process.event("services"))["services"]}
    assert await process.exit() == 0
    assert services[NORDIC[0]]["name"] == "Nordic UART", services
    properties = {each["uuid"]: each["properties"] for each in services[NORDIC[0]]["characteristics"]}
    assert set(properties[NORDIC[2]]) == {"write", "write-without-response"}, properties
    assert properties[NORDIC[3]] == ["notify"], properties
    assert services["180A"]["name"] == "Device Information", services


@case("device/scan", timeout=60)
async def _(lab):
    """Found by name and service, others left out"""
    await Uart(lab, name="Lamp").start()
    await Uart(lab, name="Meter").start()
    scan = await NearbyDevice(lab, "scan", "--name", "Met", "--service", NORDIC[0], "--timeout", "6s").start()
    found = await scan.event("discovered")
    assert found["name"] == "Meter" and NORDIC[0] in found["services"], found
    assert await scan.exit() == 0
    assert {event.get("name") for event in scan.events if event["event"] == "discovered"} == {"Meter"}
