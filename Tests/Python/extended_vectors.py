#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks extended_client.py against every vector of the extended profile; exits with the number of failures."""

import hashlib
import json
import sys

from extended_client import (
    SHARED,
    TO_CLIENT,
    TO_HOST,
    Assembly,
    Client,
    Hello,
    ProtocolError,
    Sealer,
    derive,
    frames,
    generator,
    generator_string,
    intermediate_key,
    multiply,
    transcript,
)


def message_bytes(message):
    if "text" in message:
        return message["text"].encode()
    if "hex" in message:
        return bytes.fromhex(message["hex"])
    return b"".join(
        part.encode() if isinstance(part, str) else part["repeat"].encode() * part["times"] for part in message["parts"]
    )


def check_cpace(case):
    if "refused" in case:
        bad = case["refused"]
        return multiply(bytes.fromhex(bad["scalar"]), bytes.fromhex(bad["point"])) is None
    v = {key: bytes.fromhex(value) for key, value in case["agreement"].items()}
    g = generator(v["prs"], v["ci"], v["sid"])
    spoken = transcript(v["Ya"], v["ADa"], v["Yb"], v["ADb"])
    return (
        generator_string(v["prs"], v["ci"], v["sid"]) == v["generatorString"]
        and g == v["generator"]
        and multiply(v["ya"], g) == v["Ya"]
        and multiply(v["yb"], g) == v["Yb"]
        and multiply(v["ya"], v["Yb"]) == multiply(v["yb"], v["Ya"]) == v["K"]
        and intermediate_key(v["sid"], v["K"], spoken) == v["ISK"]
        and hashlib.sha512(b"CPaceSidOutput" + spoken).digest() == v["sidOutput"]
    )


def check_keys(case):
    isk = bytes.fromhex(case["ISK"])
    return derive(isk, 1).hex() == case["toHost"] and derive(isk, 2).hex() == case["toClient"]


def check_sealing(case):
    direction = {"toHost": TO_HOST, "toClient": TO_CLIENT}[case["direction"]]
    channel = Sealer(bytes.fromhex(case["key"]), direction, bytes.fromhex(case["tag"]))
    if "seal" in case:
        return all(
            channel.seal(bytes.fromhex(step["plaintext"])).hex() == step["sealed"] for step in case["seal"]
        )
    results = [channel.open(bytes.fromhex(step["sealed"])) for step in case["open"]]
    return [None if r is None else r.hex() for r in results] == [step["plaintext"] for step in case["open"]]


def check_hello(case):
    try:
        hello = Hello(bytes.fromhex(case["hex"]))
    except ProtocolError as error:
        return case["verdict"] == {"error": str(error)}
    return case["verdict"] == {
        "accept": {
            "passcodeNeeded": hello.needs_passcode,
            "basicRefused": bool(hello.flags & 2),
            "maximumEnvelope": hello.maximum,
            "sid": hello.sid.hex(),
            "share": hello.share.hex(),
            "associatedData": hello.associated_data.hex(),
        }
    }


def check_frames(case):
    tag = bytes.fromhex(case["tag"])
    if "write" in case:
        job = case["write"]
        made = frames(message_bytes(job["message"]), tag, job["frameBytes"], job["plaintext"])
        return [frame.hex() for frame in made] == job["frames"]
    job = case["read"]
    assembly = Assembly(job["sealedLimit"], job["plaintextLimit"])
    for step in job["frames"]:
        try:
            verdict = assembly.take(message_bytes(step["frame"]))
            if verdict is None:
                got = "incomplete"
            else:
                got = {"complete": verdict[0].hex(), "plaintext": verdict[1]}
        except ProtocolError as error:
            got = {"refused": str(error)}
        if got != step["verdict"]:
            return False
    return True


def check_exchange(case):
    client = Client(
        bytes.fromhex(case["hello"]),
        case["request"].encode(),
        case["passcode"],
        case["mtu"],
        bytes.fromhex(case["ya"]),
    )
    if [frame.hex() for frame in client.frames] != case["clientFrames"]:
        return False
    answers = [client.notified(bytes.fromhex(frame)) for frame in case["hostFrames"]]
    if case["answer"] is None:
        return not any(answers) and (client.hint or b"").decode() == case["hint"]
    if answers[:-1] != [None] * (len(answers) - 1) or answers[-1] != case["answer"].encode():
        return False
    return [frame.hex() for frame in client.receipt()] == case["receipt"]


def main():
    failures = total = 0
    for name in ["cpace", "keys", "sealing", "hello", "frames", "exchange"]:
        file = json.loads((SHARED / "vectors" / f"{name}.json").read_text())
        assert file["format"] == 1, name
        for case in file["cases"]:
            total += 1
            if not globals()[f"check_{name}"](case):
                failures += 1
                print(f"{name}.json: {case['name']}: FAILED", file=sys.stderr)
    # An exchange of this run's own, with a scalar nobody has written down.
    example = json.loads((SHARED / "vectors" / "exchange.json").read_text())["cases"][0]
    fresh = [Client(bytes.fromhex(example["hello"]), b"{}", example["passcode"], 185).frames for _ in range(2)]
    if fresh[0] == fresh[1]:
        failures += 1
        print("two attempts made the same share", file=sys.stderr)
    print(f"{total - failures} of {total} cases hold")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
