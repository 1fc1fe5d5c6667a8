# SPDX-License-Identifier: MIT
"""Our host, met by phones (Bumble) at their most ordinary and their oddest."""
import asyncio
import functools

from bumble import att
from extended_search import Ended

from lab import envelope, trace
from lab.bluez import counts_the_header
from lab.cases import SUBJECTS, case
from lab.peers.central import Central
from lab.peers.port import PortCentral


#: Seconds after a link's begin or end until the adapter has to advertise again: however slow the machine is.
RIGHT_AFTER = 2


def expect_handoff(answer, payload=None):
    wanted = envelope.decode(envelope.handoff(payload=payload))
    assert answer == wanted, f"got {answer}"


def expect_reject(answer, reason, app=envelope.APP):
    assert answer["type"] == "reject" and answer["payload"]["reason"] == reason, f"got {answer}, not reject {reason}"
    assert answer["appId"] == app, f"the reject names {answer['appId']!r}, not {app!r}"


async def another_is_served(lab, make=Central.iphone):
    """The proof that a host came through: the next phone gets its handoff."""
    expect_handoff(await make(lab).join())


def expect_mtu(phone, mtu):
    assert phone.mtu_used == mtu, f"{phone.name} wrote at MTU {phone.mtu_used}, not {mtu}"


@case("host/iphone", core=True, subjects=SUBJECTS)
async def _(lab):
    """MTU 185, and the phone's own services are discovered by bluetoothd in turn"""
    await lab.host().start()
    phone = Central.iphone(lab)
    expect_handoff(await phone.join())
    expect_mtu(phone, 185)
    asked = [pdu for pdu in trace.pdus(lab.recorder.packets, "hci0") if pdu.code == trace.READ_BY_GROUP]
    assert any(not pdu.to_host for pdu in asked), "bluetoothd has not looked for the phone's services"


@case("host/android", core=True, subjects=SUBJECTS)
async def _(lab):
    """MTU 517"""
    await lab.host().start()
    phone = Central.android(lab)
    expect_handoff(await phone.join())
    expect_mtu(phone, 517)


@case("host/mtu-lowered", core=True, bugs=("bluez/bluez#65",))
async def _(lab):
    """The phone asks for 200, then for 100: bluetoothd goes on saying 200, and keeps back for good what is longer than
    100. So nothing comes, above all nothing cut; and the next one is served"""
    host = await lab.host().start()
    phone = Central.android(lab, mtu=200)
    await phone.connect()
    await phone.lower_mtu(100)
    answers = [pdu for pdu in trace.pdus(lab.recorder.packets, "hci0") if pdu.code == trace.MTU_RESPONSE]
    assert len([pdu for pdu in answers if not pdu.to_host]) == 2, f"{len(answers)} exchanges"
    await phone.discover()
    await phone.subscribe()
    await phone.write()
    # It counts as delivered after 5 s: all that a host in the basic profile can know.
    await host.delivered()
    assert not phone.heard, f"not kept back any more: {phone.heard}"
    await phone.leave()
    await another_is_served(lab)


@case("host/android-mtu-23")
async def _(lab):
    """Nothing fits 20 bytes, not even a reject: the write fails with ATT 0x80, and at once"""
    await lab.host().start()
    phone = Central.android(lab, mtu=23)
    await phone.connect()
    await phone.discover()
    await phone.subscribe()
    try:
        await phone.write()
    except att.ATT_Error as error:
        expect_mtu(phone, 23)
        assert error.error_code == envelope.APPLICATION_ERROR, f"ATT error {error.error_code:#x}, not 0x80"
    else:
        raise AssertionError("the write was acknowledged, though no answer can follow")
    await phone.leave()
    await another_is_served(lab)


@case("host/advertises-again", bugs=("bluez/bluez#644", "bluez/bluez#1015"), core=True)
async def _(lab):
    """Whoever comes or goes, the controller is told to advertise again, also beside those who are there"""
    await lab.host().start()
    first, second = Central.iphone(lab), Central.android(lab)
    pauses = []
    for change in (first.connect, second.connect, second.leave, first.leave):
        await change()
        pauses.append(await _advertising_again(lab))
    lab.note(f"after {', '.join(f'{pause:.2f}' for pause in pauses)} s")
    assert max(pauses) <= RIGHT_AFTER, f"after {max(pauses):.2f} s, not within {RIGHT_AFTER} s"


async def _advertising_again(lab):
    """How long it took after the newest change."""
    changed = max(moment for moment, _ in trace.link_changes(lab.recorder.packets, "hci0"))

    def starts():
        return [each for each in trace.advertising_starts(lab.recorder.packets, "hci0") if each > changed]

    await lab.until(starts, "advertised again", limit=3)
    return starts()[0] - changed


@case("host/long-write", subjects=SUBJECTS)
async def _(lab):
    """A request of 300 bytes at MTU 185 comes as prepared writes"""
    await lab.host().start()
    expect_handoff(await Central.iphone(lab).join(envelope.padded(300)))


@case("host/request-510", bugs=("bluez/bluez#570",), subjects=SUBJECTS)
async def _(lab):
    """The largest request that every BlueZ accepts"""
    await lab.host().start()
    expect_handoff(await Central.android(lab).join(envelope.padded(510)))


@case("host/request-512", bugs=("bluez/bluez#570",))
async def _(lab):
    """Refused by bluetoothd where it counts the header (5.66), served elsewhere; the host goes on either way"""
    await lab.host().start()
    phone = Central.android(lab)
    try:
        expect_handoff(await phone.join(envelope.padded(512)))
        lab.note("accepted")
    except att.ATT_Error as error:
        assert counts_the_header(lab.bluez_version), f"refused with {error.error_code:#x}"
        lab.note(f"refused with ATT {error.error_code:#04x}")
        await phone.leave()
    await another_is_served(lab)


@case("host/long-write-512-at-mtu-23", bugs=("bluez/bluez#570",))
async def _(lab):
    """bluetoothd hands 512 prepared bytes over in two parts; whatever it does, the phone gets an answer or an error"""
    await lab.host().start()
    phone = Central.android(lab, mtu=23)
    await phone.connect()
    await phone.discover()
    await phone.subscribe()
    try:
        await phone.write(envelope.padded(512))
        raise AssertionError("acknowledged, though no answer fits")
    except att.ATT_Error as error:
        lab.note(f"ATT {error.error_code:#04x}")
    await phone.leave()
    await another_is_served(lab)


@case("host/address-change", subjects=SUBJECTS)
async def _(lab):
    """The same phone comes back under another private address, and is a new guest"""
    await lab.host().start()
    phone = Central.iphone(lab)
    expect_handoff(await phone.join())
    await phone.change_address()
    expect_handoff(await phone.join())


@case("host/back-again", subjects=SUBJECTS)
async def _(lab):
    """The same phone, the same address, twice"""
    await lab.host().start()
    phone = Central.iphone(lab)
    expect_handoff(await phone.join())
    expect_handoff(await phone.join())


@case("host/late-subscriber")
async def _(lab):
    """Writes, and subscribes a second later: the answer is given again"""
    await lab.host().start()
    phone = Central.android(lab)
    await phone.connect()
    await phone.discover()
    await phone.write()
    await asyncio.sleep(1)
    await phone.subscribe()
    expect_handoff(await phone.answer())
    await phone.leave()


@case("host/never-subscribes", subjects=SUBJECTS)
async def _(lab):
    """Writes and leaves; the next one is served"""
    await lab.host().start()
    phone = Central.android(lab)
    await phone.connect()
    await phone.discover()
    await phone.write()
    await phone.leave()
    await another_is_served(lab)


@case("host/silent-subscriber", timeout=90)
async def _(lab):
    """One subscribes and says nothing; another finds the host meanwhile and is served"""
    await lab.host().start()
    silent = Central.iphone(lab)
    await silent.go_to("subscribed")
    await another_is_served(lab, Central.android)
    await silent.leave()


@case("host/two-at-once", bugs=("bluez/bluez#820", "bluez/bluez#1106", "bluez/bluez#1452"), timeout=90)
async def _(lab):
    """Both connected and subscribed, both ask: each gets an answer of its own app, the second once the first has left"""
    await lab.host().start()
    first, second = Central.iphone(lab), Central.android(lab)
    await first.go_to("subscribed")
    await second.go_to("subscribed")
    await first.write()
    await second.write(envelope.join_request(envelope.OTHER_APP))
    expect_handoff(await first.answer())
    await first.leave()
    # The basic profile's notifications reach every subscriber: the second may hear the first's answer before its own.
    answer = await second.answer()
    if answer["appId"] == envelope.APP:
        lab.note("the second heard the first one's answer (broadcast)")
        answer = await second.answer()
    expect_reject(answer, "app_mismatch", envelope.OTHER_APP)
    await second.leave()


for step in Central.STEPS:

    @case(f"host/vanishes-{step}", core=step == "written", timeout=90, subjects=SUBJECTS)
    async def _(lab, step=step):
        """The phone is gone without goodbye; the next one is served"""
        await lab.host().start()
        phone = Central.iphone(lab)
        await phone.go_to(step)
        phone.vanish()
        await another_is_served(lab, Central.android)


@case("host/wrong-app", subjects=SUBJECTS)
async def _(lab):
    """The reject names the request's app"""
    await lab.host().start()
    answer = await Central.iphone(lab).join(envelope.join_request(envelope.OTHER_APP))
    expect_reject(answer, "app_mismatch", envelope.OTHER_APP)


@case("host/wrong-version")
async def _(lab):
    """A version of the future"""
    await lab.host().start()
    expect_reject(await Central.iphone(lab).join(envelope.join_request(version=2)), "unsupported_version")


for name, request in {
    "one-byte": b"\x00",
    "binary": bytes(range(200, 256)),
    "not-an-object": b'["join_request"]',
    "cut": envelope.join_request()[:-3],
}.items():

    @case(f"host/malformed-{name}")
    async def _(lab, request=request):
        """Rejected as malformed, and the host goes on"""
        await lab.host().start()
        expect_reject(await Central.iphone(lab).join(request), "malformed", "-")
        await another_is_served(lab)


@case("host/empty-write")
async def _(lab):
    """A write of no bytes: an answer or an ATT error, and the host goes on"""
    await lab.host().start()
    phone = Central.iphone(lab)
    try:
        expect_reject(await phone.join(b""), "malformed", "-")
    except att.ATT_Error as error:
        lab.note(f"ATT {error.error_code:#04x}")
        await phone.leave()
    await another_is_served(lab)


@case("host/too-large-for-the-phone")
async def _(lab):
    """A handoff of 300 bytes fits MTU 517 and not 185: rejected there, never cut"""
    payload = {"note": "x" * 200}
    await lab.host(payload=payload).start()
    expect_reject(await Central.iphone(lab).join(), "too_large")
    expect_handoff(await Central.android(lab).join(), payload)


@case("host/without-experimental", core=True, subjects=SUBJECTS)
async def _(lab):
    """bluetoothd as distributions start it: advertising intervals may be refused, hosting may not"""
    await lab.restart_bluetoothd(options=())
    await lab.host().start()
    await another_is_served(lab)


@case("host/pairing-phone", bugs=("bluez/bluez#38", "ukBaz/python-bluezero#335"), subjects=SUBJECTS)
async def _(lab):
    """A phone whose battery level wants pairing, and the cure that we advise, -P battery: no prompt, and a handoff"""
    await lab.restart_bluetoothd(options=("-E", "-P", "battery"))
    await lab.host().start()
    phone = Central.guarded(lab, on_pairing="refuses")
    await phone.go_to("subscribed")
    await asyncio.sleep(3)
    assert not phone.pairing_asked.is_set(), "bluetoothd asks for pairing all the same"
    await phone.write()
    expect_handoff(await phone.answer())
    await phone.leave()


@case("host/twenty", bugs=("bluez/bluez#1106",), timeout=240)
async def _(lab):
    """20 phones arrive together: eight of this app, six of an app of their own each, six sealed. Each ends with its own
    answer or a typed busy. Only of the eight's handoffs nobody can tell whose it was: the basic profile's answer
    reaches everybody, and is the same for all of them"""
    host = await lab.host().start()
    outcomes = []

    async def comes(phone, app, expect):
        await phone.connect(timeout=120)
        await phone.discover()
        await phone.subscribe()
        await phone.write(envelope.join_request(app))
        # What was meant for others comes by as well (broadcast): another app's, which no client takes for its own.
        while (answer := await phone.answer(timeout=40))["appId"] != app:
            assert answer["appId"] in apps, f"{phone.name} heard {answer}"
        if answer["type"] == "reject" and answer["payload"]["reason"] == "busy":
            outcomes.append("busy")
        else:
            expect(answer)
            outcomes.append("own answer")
        await phone.leave()

    def expect_mismatch(answer, app):
        expect_reject(answer, "app_mismatch", app)

    async def comes_sealed(phone):
        search = phone.search()
        try:
            expect_handoff(await search.run(150))
            outcomes.append("own answer, sealed")
        except Ended as error:
            assert error.reason == "busy", error
            outcomes.append("busy, sealed")

    others = [f"com.example.other{number}" for number in range(6)]
    apps = {envelope.APP, *others}
    await asyncio.gather(
        *(comes(Central.android(lab), envelope.APP, expect_handoff) for _ in range(8)),
        *(comes(Central.android(lab), app, functools.partial(expect_mismatch, app=app)) for app in others),
        *(comes_sealed(PortCentral.phone(lab, 185)) for _ in range(6)),
    )
    assert len(outcomes) == 20, outcomes
    # One is decided on and 16 wait: there is room for all 14 of today's, and for some of the sealed.
    assert outcomes.count("own answer") >= 10 and outcomes.count("own answer, sealed") >= 1, outcomes
    lab.note(", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes))))
    assert host.running, "nearby host has ended"
