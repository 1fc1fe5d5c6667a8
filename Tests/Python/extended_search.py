# SPDX-License-Identifier: MIT
"""A whole extended client on top of extended_client.py: envelopes, the steps of an exchange, and what a client does
when something goes wrong (docs/protocol.md). Tests only.

The radio is behind `Link`; extended_join.py has one for bleak, the lab one for Bumble. Left out: the basic profile,
RSSI, hosts' further instances of the service, and looking at more than one device.
"""

import asyncio
import base64
import json
import secrets
import time

from extended_client import PROTOCOL, Client, ProtocolError

_CHARACTERISTICS = PROTOCOL["gatt"]["characteristics"]
SERVICE = PROTOCOL["gatt"]["service"]["uuid"].lower()
HELLO = _CHARACTERISTICS["hello"]["uuid"].lower()
CHANNEL = _CHARACTERISTICS["channel"]["uuid"].lower()
RESERVED = PROTOCOL["envelope"]["reservedPayloadPrefix"]
REQUEST_ID = PROTOCOL["extended"]["requestIdKey"]
DEPTH = PROTOCOL["limits"]["jsonDepth"]
ATTEMPTS = PROTOCOL["limits"]["attemptsPerDevice"]
TAG_IN_USE = PROTOCOL["attErrors"]["tagInUse"]
HELLO_READS = PROTOCOL["extended"]["limits"]["helloReads"]
EXPOSURES = PROTOCOL["extended"]["limits"]["passcodeExposures"]
DOUBT = PROTOCOL["milliseconds"]["doubtfulAnswer"] / 1000
ANSWER = PROTOCOL["milliseconds"]["answer"] / 1000
FIRST_PAUSE = PROTOCOL["milliseconds"]["firstRetryPause"] / 1000
RECEIPT_WRITE = PROTOCOL["extended"]["milliseconds"]["receiptWrite"] / 1000
#: What a client may say after a time-out: this much fits every MTU, also one that a stack has overstated.
SMALLEST_NOTIFICATION = 20


class Refused(Exception):
    """A write was answered with an ATT error."""

    def __init__(self, code):
        super().__init__(f"ATT error {code:#04x}")
        self.code = code


class Ended(Exception):
    """The search has ended without a handoff. `code`: rejected, wrong_passcode, security_required, no_answer, link,
    malformed or passcode_exposed; `sealed` where a rejection was, so that nobody but the host can have said it."""

    def __init__(self, code, reason=None, message="", att_error=None, retry_after=None, sealed=False):
        super().__init__(": ".join(str(each) for each in (code, reason or att_error, message) if each))
        self.code, self.reason, self.message = code, reason, message
        self.att_error, self.retry_after, self.sealed = att_error, retry_after, sealed


class Link:
    """One connection to a host. What fails because the link has gone raises ConnectionError."""

    mtu = None  # the ATT MTU, None where the stack does not tell it

    async def hello(self):
        """What hello holds; None where the host has no hello or no channel."""
        raise NotImplementedError

    async def subscribe(self, notified, lost):
        """To channel; `notified(bytes)` is called for each value, whomever it is for, `lost()` when the link goes."""
        raise NotImplementedError

    async def write(self, frame):
        """To channel, with response. Raises Refused."""
        raise NotImplementedError

    async def close(self):
        raise NotImplementedError


# MARK: Envelopes


def encode(**fields):
    """The strict form: this order of keys, nothing escaped that need not be."""
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def _first_wins(pairs):
    found = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def _depth(value):
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def decode(message):
    """An answer as a dictionary. Raises ValueError, also for what is no answer."""
    text = message.rstrip(b"\0 \t\r\n").decode()
    fields = json.loads(text, object_pairs_hook=_first_wins, parse_constant=_refuse_constant)
    if not isinstance(fields, dict) or _depth(fields) > DEPTH:
        raise ValueError("no object, or too deep")
    json.dumps(fields, ensure_ascii=False).encode()  # a lone surrogate fails here
    version = fields.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, (int, float)) or version != 1:
        raise ValueError(f"protocolVersion {version}")
    payload, session = fields.get("payload"), fields.get("sessionId")
    if fields.get("type") == "handoff":
        whole = isinstance(payload, dict) and isinstance(session, str)
    elif fields.get("type") == "reject":
        whole = isinstance(payload, dict) and isinstance(payload.get("reason"), str)
        whole = whole and isinstance(payload.get("message"), str)
    else:
        whole = False
    if not whole or not isinstance(fields.get("appId"), str) or not fields["appId"]:
        raise ValueError("a key is missing or of the wrong type")
    return fields


# MARK: The search


class Search:
    """One join. `dial()` makes a Link to the host, anew for each attempt; `progress(bytes)` tells what has come of the
    answer; `patience` stretches the time limits on a slow machine. `attempts` are the cryptographic attempts made."""

    def __init__(self, dial, app, passcode=None, payload=None, session=None, progress=None, patience=1):
        if passcode == "":
            raise ValueError("an empty passcode is an error, never none")
        if any(key.startswith(RESERVED) for key in payload or {}):
            raise ValueError(f"keys that begin with {RESERVED} are reserved")
        self.dial, self.app, self.passcode = dial, app, passcode
        self.progress = progress or (lambda count: None)
        self.patience = patience
        # The same bytes as long as the search lasts: the host's app is asked once.
        self.request_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
        fields = {"type": "join_request", "protocolVersion": 1, "appId": app}
        if session is not None:
            fields["sessionId"] = session
        self.request = encode(**fields, payload={**(payload or {}), REQUEST_ID: self.request_id})
        self.attempts = []
        self.frames = []
        self._came = asyncio.Event()
        self._exposures = 0
        self._is_lost = self._timed_out = False

    async def run(self):
        """The handoff. Raises Ended."""
        problem = None
        for number in range(ATTEMPTS):
            if number:
                await asyncio.sleep(FIRST_PAUSE * number)
            link = None
            try:
                try:
                    link = await self.dial()
                except asyncio.TimeoutError:
                    raise ConnectionError("connecting took too long") from None
                return await self._on(link)
            except ConnectionError as error:
                problem = Ended("link", message=str(error))
            except asyncio.TimeoutError:
                self._timed_out = True
                problem = Ended("no_answer")
            finally:
                if link is not None:
                    await self._close(link)
        raise problem

    @staticmethod
    async def _close(link):
        try:
            await link.close()
        except ConnectionError:
            pass

    async def _on(self, link):
        subscribed = False
        for _ in range(HELLO_READS):
            client = self._begin(link, await link.hello())
            if not subscribed:
                self._is_lost = False
                await link.subscribe(self._notified, self._lost)
                subscribed = True
            verdict = await self._exchange(link, client)
            if verdict is not None:
                return verdict
        raise Ended("rejected", reason="stale", message=f"after {HELLO_READS} times hello")

    def _begin(self, link, hello):
        if hello is None:
            raise Ended("security_required", message="the host has no extended profile")
        if self.passcode is not None and self._exposures == EXPOSURES:
            raise Ended("passcode_exposed", message=f"{EXPOSURES} times")
        largest = SMALLEST_NOTIFICATION if self._timed_out else None
        try:
            client = Client(hello, self.request, self.passcode, link.mtu, largest=largest)
        except ProtocolError as error:
            code = str(error)
            if code == "unusable_share" and self.passcode is not None:
                code = "wrong_passcode"
            known = code in ("security_required", "wrong_passcode")
            raise Ended(code if known else "malformed", message=code) from None
        if len(self.request) > client.hello.maximum:
            raise Ended("rejected", reason="too_large", message="the request is over the host's limit")
        self.attempts.append(client)
        return client

    def _notified(self, frame):
        self.frames.append(frame)
        self._came.set()

    def _lost(self):
        self._is_lost = True
        self._came.set()

    async def _exchange(self, link, client):
        """The handoff, or None: read hello again."""
        self.frames.clear()
        if self.passcode is not None:
            self._exposures += 1
        try:
            for frame in client.frames:
                await link.write(frame)
        except Refused as error:
            if error.code == TAG_IN_USE:
                return None
            # Held as a plaintext reject is, in case a sealed answer comes all the same.
            answer = await self._answer(client, DOUBT, held=True)
            if answer is None:
                raise Ended("rejected", att_error=error.code) from None
        else:
            answer = await self._answer(client, ANSWER)
        if answer is None:
            return self._hinted(client)
        fields = self._judge(answer)
        try:
            for frame in client.receipt():
                await asyncio.wait_for(link.write(frame), RECEIPT_WRITE * self.patience)
        except (asyncio.TimeoutError, ConnectionError, Refused):
            pass  # a client has its handoff whatever becomes of the receipt
        return fields

    async def _answer(self, client, silence, held=False):
        """The sealed answer's envelope. None: nothing came after a plaintext reject, or (`held`) at all."""
        limit = silence * self.patience
        until = time.monotonic() + limit
        while True:
            while self.frames:
                frame = self.frames.pop(0)
                before = client.received
                answer = client.notified(frame)
                if answer is not None:
                    self.progress(len(answer) + 16)  # sealed, as it was counted before
                    return answer
                if client.hint is not None and not held:
                    # Anybody can have slipped it in: a sealed answer within a second counts in its place.
                    held, until = True, time.monotonic() + DOUBT * self.patience
                elif client.received > before:
                    self.progress(client.received)
                    if not held:
                        until = time.monotonic() + limit
            if self._is_lost and not held:
                raise ConnectionError("the link was lost")
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), max(0, until - time.monotonic()))
            except asyncio.TimeoutError:
                if held:
                    return None
                raise

    def _hinted(self, client):
        """What a plaintext reject comes to when no sealed answer followed."""
        try:
            payload = decode(client.hint)["payload"]
        except ValueError:
            raise Ended("malformed", message="a plaintext reject") from None
        if payload["reason"] == "stale":
            return None
        code = "wrong_passcode" if payload["reason"] == "unauthorized" else "rejected"
        raise Ended(code, payload["reason"], payload["message"], retry_after=payload.get("retryAfter"))

    def _judge(self, answer):
        try:
            fields = decode(answer)
        except ValueError as error:
            raise Ended("malformed", message=str(error), sealed=True) from None
        payload = fields["payload"]
        if fields["type"] == "reject":
            raise Ended("rejected", payload["reason"], payload["message"], sealed=True)
        if fields["appId"] != self.app:
            raise Ended("malformed", message="a handoff for another app", sealed=True)
        fields["payload"] = {key: value for key, value in payload.items() if not key.startswith(RESERVED)}
        return fields


async def join(dial, app, **options):
    """One search from its beginning to its end: the handoff, or Ended is raised."""
    return await Search(dial, app, **options).run()
