# SPDX-License-Identifier: MIT
"""The basic profile as the peers speak it (docs/protocol.md), written anew here: a foreign peer shares no code."""
import json

SERVICE = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
MESSAGE = "b2c3d4e5-f6a7-8901-bcde-f12345678901"
APP = "com.example.lab"
OTHER_APP = "com.example.other"
SESSION = "550e8400-e29b-41d4-a716-446655440000"
PAYLOAD = {"roomCode": "SWIFT42"}
#: The first of the ATT error codes that an application gives their meaning (Core 5.4, Vol 3, Part F, 3.4.1.1): an
#: older host refuses a join request's write with it.
APPLICATION_ERROR = 0x80


def encode(**fields):
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def join_request(app=APP, version=1, **more):
    return encode(type="join_request", protocolVersion=version, appId=app, **more)


def handoff(app=APP, session=SESSION, payload=None, version=1):
    payload = PAYLOAD if payload is None else payload
    return encode(type="handoff", protocolVersion=version, appId=app, sessionId=session, payload=payload)


def reject(reason, app=APP, message=""):
    return encode(type="reject", protocolVersion=1, appId=app, payload={"reason": reason, "message": message})


def padded(length, app=APP):
    """A join request of exactly that many bytes."""
    empty = len(join_request(app, payload={"pad": ""}))
    if length < empty:
        raise ValueError(f"a join request has at least {empty} bytes")
    return join_request(app, payload={"pad": "x" * (length - empty)})


def decode(message):
    return json.loads(bytes(message).decode())
