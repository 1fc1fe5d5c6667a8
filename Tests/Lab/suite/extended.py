# SPDX-License-Identifier: MIT
"""The extended profile on the real stack: our host joined by the Python port of the client (Tests/Python), which was
written from the specification alone, and by our own client."""
import asyncio
import os
import tempfile

from bumble import att
from extended_client import Assembly
from extended_search import Ended

from lab import envelope, trace
from lab.cases import case
from lab.peers.central import Central
from lab.peers.port import BleakPort, PortCentral

from .host_centrals import expect_handoff, expect_reject

PASSCODE, WRONG = "48291357", "11111111"
LARGEST = 65_536  # the largest envelope (shared/protocol.json)
#: At MTU 23, in 1,170 notifications: 4,700 can take an emulated machine longer than the 60 s of the host's patience, which
#: LAB_PATIENCE does not stretch. So a machine that needs patience gets less.
LARGEST_AT_23 = 16_384
#: Before BlueZ 5.60 each waits for bluetoothd besides (docs/bluez.md).
LARGEST_AT_23_BEFORE_560 = 4_096


def note_of(size):
    """A payload whose handoff is an envelope of that size."""
    return {"note": "x" * (size - len(envelope.handoff(payload={"note": ""})))}


def code_words(passcode):
    return ("--passcode", passcode) if passcode else ()


async def serving(lab, payload=None, passcode=None):
    """Our host; its payload goes by a file, since 64 KiB are a lot for a command line."""
    if payload is None:
        return await lab.host(more=code_words(passcode)).start()
    with tempfile.NamedTemporaryFile("wb", suffix=".json", delete=False) as file:
        file.write(envelope.encode(**payload))
    lab.at_end(lambda: os.unlink(file.name))
    more = ("--payload-file", file.name, *code_words(passcode))
    return await lab.host(payload={}, more=more).start()


async def ended(search, timeout=40):
    """How a search ended that was to fail."""
    try:
        answer = await search.run(timeout)
    except Ended as error:
        return error
    raise AssertionError(f"{search.name} was served: {str(answer)[:200]}")


def asked(host):
    return [event for event in host.nearby.events if event.get("event") == "joinRequested"]


# The port joins over Bumble.

for mtu in (23, 185, 517):
    for passcode in (None, PASSCODE):
        for size in (400, LARGEST if mtu > 23 else LARGEST_AT_23):
            if (passcode, size) == (None, LARGEST_AT_23):
                continue  # once is enough
            length = size if size < 1024 else f"{size // 1024}k"
            name = f"extended/port-mtu-{mtu}-{length}{'-passcode' if passcode else ''}"

            @case(name, core=(mtu, passcode, size) == (185, PASSCODE, 400), timeout=90)
            async def _(lab, mtu=mtu, passcode=passcode, size=size):
                """The port of the client joins; the receipt reaches the host"""
                if size == LARGEST_AT_23:
                    size = LARGEST_AT_23_BEFORE_560 if lab.bluez_version < (5, 60) else LARGEST_AT_23
                    size = max(2048, int(size / lab.patience))
                    lab.note(f"{size} bytes")
                payload, steps = note_of(size), []
                host = await serving(lab, payload, passcode)
                phone = PortCentral.phone(lab, mtu)
                search = phone.search(passcode=passcode, progress=steps.append)
                expect_handoff(await search.run(60), payload)
                assert search.attempts[-1].hello.needs_passcode == bool(passcode)
                assert len(search.attempts) == 1, f"{len(search.attempts)} attempts"
                assert steps == sorted(steps) and steps[-1] == size + 16, f"progress {steps[:3]}…{steps[-3:]}"
                assert size == 400 or len(steps) > 100, f"{len(steps)} steps of progress"
                await host.delivered()
                [request] = asked(host)
                assert request["security"] == ("authenticated" if passcode else "sealed"), request


@case("extended/port-bleak", timeout=90)
async def _(lab):
    """The same port on bleak, hci1 to hci0, 4 KiB"""
    payload = note_of(4096)
    host = await serving(lab, payload, PASSCODE)
    search = BleakPort(lab).search(passcode=PASSCODE)
    expect_handoff(await search.run(60), payload)
    await host.delivered()


@case("extended/port-large-request", timeout=120)
async def _(lab):
    """A request of 6 KiB in frames of 182 bytes reaches the app whole"""
    host = await serving(lab, passcode=PASSCODE)
    sent = {"note": "y" * 6_000}
    expect_handoff(await PortCentral.phone(lab, 185).search(passcode=PASSCODE, payload=sent).run(90))
    [request] = asked(host)
    assert request["payload"] == sent, str(request)[:200]


@case("extended/port-wrong-passcode")
async def _(lab):
    """Rejected before the app is asked, and typed; the right one joins after it"""
    host = await serving(lab, passcode=PASSCODE)
    problem = await ended(PortCentral.phone(lab, 185).search(passcode=WRONG))
    assert (problem.code, problem.reason) == ("wrong_passcode", "unauthorized"), problem
    assert not asked(host), asked(host)
    expect_handoff(await PortCentral.phone(lab, 185).search(passcode=PASSCODE).run())


@case("extended/port-without-passcode")
async def _(lab):
    """One side has a passcode and the other has none: nothing is written, either way"""
    host = await serving(lab, passcode=PASSCODE)
    problem = await ended(PortCentral.phone(lab, 185).search())
    assert problem.code == "security_required", problem
    await host.stop()
    host = await serving(lab)
    problem = await ended(PortCentral.phone(lab, 185).search(passcode=PASSCODE))
    assert problem.code == "security_required", problem
    assert not asked(host), asked(host)


@case("extended/basic-refused")
async def _(lab):
    """A phone of today's at a host with a passcode: told so, and the app is not asked"""
    host = await serving(lab, passcode=PASSCODE)
    expect_reject(await Central.iphone(lab).join(), "security_required")
    expect_reject(await Central.iphone(lab).join(envelope.join_request(envelope.OTHER_APP)), "app_mismatch",
                  envelope.OTHER_APP)
    assert not asked(host), asked(host)
    expect_handoff(await PortCentral.phone(lab, 185).search(passcode=PASSCODE).run())


@case("extended/port-link-lost", timeout=120)
async def _(lab):
    """The link dies in the middle of 64 KiB: the same request again gets the same answer, and the app was asked once"""
    payload, steps = note_of(LARGEST), []

    def progress(count):
        steps.append(count)
        if len(steps) == 40:
            phone.later(drop())

    async def drop():
        assert lab.medium.drop([phone.controller.name]) == 1

    host = await serving(lab, payload, PASSCODE)
    phone = PortCentral.phone(lab, 185)
    search = phone.search(passcode=PASSCODE, progress=progress)
    expect_handoff(await search.run(90), payload)
    assert len(search.attempts) == 2 and steps != sorted(steps), f"{len(search.attempts)} attempts"
    first, second = search.attempts
    assert first.tag != second.tag and first.hello.sid != second.hello.sid, "keys were used again"
    await host.delivered()
    assert len(asked(host)) == 1, asked(host)


@case("extended/port-beside-a-flood", timeout=120)
async def _(lab):
    """A basic client writes as fast as it can while an extended one joins a host without a passcode"""
    payload = note_of(400)
    host = await serving(lab, payload)
    noisy = Central.android(lab)
    await noisy.go_to("subscribed")
    written = 0

    async def flood():
        nonlocal written
        while True:
            try:
                await noisy.write()
            except att.ATT_Error:
                pass  # it may be told to stop
            written += 1

    flooding = noisy.later(flood())
    expect_handoff(await PortCentral.phone(lab, 185).search().run(60), payload)
    assert not flooding.done(), flooding
    flooding.cancel()
    lab.note(f"{written} basic requests meanwhile")
    assert written > 10, "no flood"
    await noisy.leave()


# Two at once: what each heard, out of the HCI trace.


def messages(values, tag):
    """The sealed messages under one tag among notified values."""
    assembly, found = Assembly(LARGEST + 128, 512), []
    for value in values:
        if value[1:3] == tag and (message := assembly.take(value)) is not None:
            assert not message[1], "a message in plain text"
            found.append(message[0])
    return found


async def two_at_once(lab, payload, passcode, apps):
    """Both connected, both subscribed, then both ask. Their answers (or Ended), searches and what each link carried."""
    both = asyncio.Barrier(2)
    phones = [PortCentral.phone(lab, 185) for _ in apps]
    searches = [
        phone.search(passcode=passcode, app=app, before_writing=both.wait, stays=True)
        for phone, app in zip(phones, apps)
    ]
    answers = await asyncio.gather(*(search.run(60) for search in searches), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Ended):
            raise answer
    await asyncio.sleep(1)  # what is on its way to the other one
    heard = trace.notifications(lab.recorder.packets, "hci0", phones[0].channel.handle)
    for phone in phones:
        await phone.leave()
    assert len(heard) == 2, f"{len(heard)} links were notified, not 2"
    first, second = heard.values()
    assert first == second, f"the links carried {len(first)} and {len(second)} notifications, not the same"
    secret = envelope.encode(**payload)[1:-1]
    assert not any(secret[:16] in value for value in first), "the payload is in the trace in plain text"
    tags = [search.attempts[-1].tag for search in searches]
    assert tags[0] != tags[1] and {value[1:3] for value in first} == set(tags), "frames under a foreign tag"
    for mine, other in ((0, 1), (1, 0)):
        [sealed] = messages(first, tags[mine])
        assert searches[mine].attempts[-1].opens(sealed), "the trace's message is not the one that opened"
        for tag in tags:
            assert not searches[other].attempts[-1].opens(sealed, tag), "the other's message opens"
    lab.note(f"{len(first)} notifications on both links")
    return answers


@case("extended/two-at-once", core=True, bugs=("bluez/bluez#820", "bluez/bluez#1106", "bluez/bluez#1452"), timeout=120)
async def _(lab):
    """Every notification reaches both (HCI trace); each opens its own handoff, and neither the other's"""
    payload = note_of(2_000)
    host = await serving(lab, payload, PASSCODE)
    for answer in await two_at_once(lab, payload, PASSCODE, [envelope.APP] * 2):
        expect_handoff(answer, payload)
    await host.delivered(count=2)


@case("extended/two-apps-at-once", bugs=("bluez/bluez#820",), timeout=120)
async def _(lab):
    """Without a passcode: one gets the handoff, and the other, who hears all of it, its own sealed reject"""
    payload = note_of(2_000)
    host = await serving(lab, payload)
    handoff, reject = await two_at_once(lab, payload, None, [envelope.APP, envelope.OTHER_APP])
    expect_handoff(handoff, payload)
    assert isinstance(reject, Ended) and reject.sealed and reject.reason == "app_mismatch", reject
    await host.delivered()


# Our own two ends.


@case("extended/nearby-passcode", timeout=90)
async def _(lab):
    """nearby join meets nearby host, both with the passcode"""
    payload = note_of(400)
    host = await serving(lab, payload, PASSCODE)
    join = await lab.join(more=code_words(PASSCODE)).start()
    outcome = await join.outcome()
    assert outcome.kind == "handoff", outcome
    expect_handoff(outcome.message, payload)
    assert join.nearby.events[-1]["security"] == "authenticated", join.nearby.events[-1]
    await host.delivered()


@case("extended/nearby-64k", timeout=120)
async def _(lab):
    """64 KiB with progress, which never goes back"""
    payload = note_of(LARGEST)
    host = await serving(lab, payload, PASSCODE)
    join = await lab.join(timeout=60, more=code_words(PASSCODE)).start()
    outcome = await join.outcome()
    assert outcome.kind == "handoff", outcome
    expect_handoff(outcome.message, payload)
    steps = [event["bytes"] for event in join.nearby.events if event.get("event") == "progress"]
    assert len(steps) > 10 and steps == sorted(steps), f"progress {steps[:5]}…{steps[-5:]}"
    assert LARGEST <= steps[-1] <= LARGEST + 128, f"progress ends with {steps[-1]}"
    lab.note(f"{len(steps)} steps of progress")
    await host.delivered()


@case("extended/nearby-wrong-passcode", timeout=90)
async def _(lab):
    """An exit status of its own, 80; without any, 81"""
    host = await serving(lab, passcode=PASSCODE)
    outcome = await (await lab.join(more=code_words(WRONG)).start()).outcome()
    assert (outcome.code, outcome.status) == ("wrongPasscode", 80), outcome
    outcome = await (await lab.join().start()).outcome()
    assert (outcome.code, outcome.status) == ("securityRequired", 81), outcome
    assert not asked(host), asked(host)
