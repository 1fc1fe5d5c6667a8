# SPDX-License-Identifier: MIT
"""The extended profile's client, written from docs/protocol.md, shared/protocol.json and shared/vectors alone.

Tests only: it shows that a port can be written so. Pure: bytes in, bytes out, libsodium through ctypes; what turns it
into joins is extended_search.py, and extended_vectors.py checks it against every vector.
"""

import ctypes
import ctypes.util
import hashlib
import json
import pathlib

# The project's folder, or (in the lab) the copy beside this file.
SHARED = next(each / "shared" for each in pathlib.Path(__file__).resolve().parents if (each / "shared").is_dir())


def _library():
    # By its name first: find_library starts other programs, which takes seconds in emulation.
    for name in ("libsodium.so.23", "libsodium.so.26"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return ctypes.CDLL(ctypes.util.find_library("sodium"))


_sodium = _library()
if _sodium.sodium_init() < 0:
    raise RuntimeError("libsodium does not start")


class ProtocolError(Exception):
    """What came does not belong here; the text is the verdict's name in the vectors."""


# MARK: libsodium


def from_hash(digest):
    out = ctypes.create_string_buffer(32)
    _sodium.crypto_core_ristretto255_from_hash(out, digest)
    return out.raw


def multiply(scalar, point):
    """None where the point is no element, or the product is the neutral one."""
    out = ctypes.create_string_buffer(32)
    if len(point) != 32 or _sodium.crypto_scalarmult_ristretto255(out, scalar, point) != 0:
        return None
    return out.raw


def random_scalar():
    out = ctypes.create_string_buffer(32)
    _sodium.crypto_core_ristretto255_scalar_random(out)
    return out.raw


def derive(master, number):
    out = ctypes.create_string_buffer(32)
    if _sodium.crypto_kdf_derive_from_key(
        out, ctypes.c_size_t(32), ctypes.c_uint64(number), b"NDKv1key", master[:32]
    ):
        raise ProtocolError("kdf")
    return out.raw


def aead(seal, text, ad, nonce, key):
    """None where it does not open."""
    out = ctypes.create_string_buffer(len(text) + 32)
    length = ctypes.c_ulonglong()
    size = ctypes.c_ulonglong
    if seal:
        _sodium.crypto_aead_chacha20poly1305_ietf_encrypt(
            out, ctypes.byref(length), text, size(len(text)), ad, size(len(ad)), None, nonce, key
        )
    elif len(text) < 16 or _sodium.crypto_aead_chacha20poly1305_ietf_decrypt(
        out, ctypes.byref(length), None, text, size(len(text)), ad, size(len(ad)), nonce, key
    ):
        return None
    return out.raw[: length.value]


# MARK: CPace


def prepend_length(data):
    out, rest = b"", len(data)
    while True:
        low, rest = rest & 0x7F, rest >> 7
        out += bytes([low | (0x80 if rest else 0)])
        if not rest:
            return out + data


def lv_cat(*parts):
    return b"".join(prepend_length(part) for part in parts)


def generator_string(prs, ci, sid):
    dsi = b"CPaceRistretto255"
    padding = max(0, 128 - 1 - len(prepend_length(prs)) - len(prepend_length(dsi)))
    return lv_cat(dsi, prs, bytes(padding), ci, sid)


def generator(prs, ci, sid):
    return from_hash(hashlib.sha512(generator_string(prs, ci, sid)).digest())


def transcript(ya, ada, yb, adb):
    return lv_cat(ya, ada) + lv_cat(yb, adb)


def intermediate_key(sid, k, spoken):
    return hashlib.sha512(lv_cat(b"CPaceRistretto255_ISK", sid, k) + spoken).digest()


PROTOCOL = json.loads((SHARED / "protocol.json").read_text())


def channel_identifier():
    service = bytes.fromhex(PROTOCOL["gatt"]["service"]["uuid"].replace("-", ""))
    return lv_cat(b"NearbyDiscoveryKit", service)


# MARK: Messages

TO_HOST, TO_CLIENT = 1, 2


class Sealer:
    """One direction's messages, numbered from 0; never two under one number."""

    def __init__(self, key, direction, tag):
        self.key, self.ad, self.number = key, bytes([direction]) + tag, 0

    def seal(self, plaintext):
        number, self.number = self.number, self.number + 1
        return aead(True, plaintext, self.ad, number.to_bytes(12, "big"), self.key)

    def open(self, sealed):
        plaintext = aead(False, sealed, self.ad, self.number.to_bytes(12, "big"), self.key)
        if plaintext is not None:
            self.number += 1
        return plaintext


class Hello:
    def __init__(self, data):
        if not data:
            raise ProtocolError("too_short")
        if data[0] != 1:
            raise ProtocolError("unknown_version")
        if len(data) < 54:
            raise ProtocolError("too_short")
        self.flags, self.maximum = data[1], int.from_bytes(data[2:6], "big")
        if not 512 <= self.maximum <= 65536:
            raise ProtocolError("limit_out_of_range")
        self.sid, self.share = data[6:22], data[22:54]
        self.associated_data = data[:6] + data[54:]

    @property
    def needs_passcode(self):
        return bool(self.flags & 1)


def frames(message, tag, size, plaintext=False):
    out, step = [], size - 4
    for number, start in enumerate(range(0, max(len(message), 1), step)):
        data = message[start : start + step]
        flags = (1 if start + step < len(message) else 0) | (2 if plaintext else 0)
        out.append(bytes([flags]) + tag + bytes([number & 0xFF]) + data)
    return out


class Assembly:
    """Puts frames of one tag together; `take` gives a verdict as the vectors name it."""

    def __init__(self, sealed_limit, plaintext_limit=None):
        self.limits = (sealed_limit, plaintext_limit)
        self.reset()

    def reset(self):
        self.data, self.expected, self.plaintext, self.empty = bytearray(), 0, None, True

    def _refuse(self, why):
        self.reset()
        raise ProtocolError(why)

    def take(self, frame):
        if len(frame) < 4:
            raise ProtocolError("tooShort")
        flags, sequence, data = frame[0], frame[3], frame[4:]
        if flags & ~3:
            raise ProtocolError("unknownFlags")
        more, plaintext = bool(flags & 1), bool(flags & 2)
        if more and not data:
            raise ProtocolError("emptyBeforeEnd")
        if self.empty or sequence != self.expected:
            self.reset()
            if sequence:
                self._refuse("outOfOrder")
        limit = self.limits[plaintext]
        if limit is None or not (self.empty or plaintext == self.plaintext):
            self._refuse("wrongPlaintextFlag")
        if len(self.data) + len(data) > limit:
            self._refuse("tooLong")
        self.data += data
        self.empty, self.plaintext = False, plaintext
        self.expected = (sequence + 1) & 0xFF
        if more:
            return None
        message = bytes(self.data)
        self.reset()
        return message, plaintext


class Client:
    """One attempt on top of one hello: `frames` to write, `notified` for what comes, `receipt` to write at the end."""

    def __init__(self, hello, request, passcode=None, mtu=None, scalar=None, largest=None):
        """`largest`: the notification that message 0 says is the largest, where that is not what the MTU allows."""
        self.hello = Hello(hello)
        if self.hello.needs_passcode != (passcode is not None):
            raise ProtocolError("security_required")
        scalar = scalar or random_scalar()
        prs = (passcode or "").encode("ascii")
        share = multiply(scalar, generator(prs, channel_identifier(), self.hello.sid))
        if largest is None:
            largest = min(max(mtu, 23) - 3, 512) if mtu else 0
        ada = self.hello.sid + largest.to_bytes(2, "big")
        k = multiply(scalar, self.hello.share)
        if k is None:
            raise ProtocolError("unusable_share")
        self.tag = share[:2]
        isk = intermediate_key(
            self.hello.sid, k, transcript(share, ada, self.hello.share, self.hello.associated_data)
        )
        self._down = Sealer(derive(isk, 1), TO_HOST, self.tag)
        self._up = Sealer(derive(isk, 2), TO_CLIENT, self.tag)
        self._size = min(max(mtu, 23) - 3, 509) if mtu else 180
        self._assembly = Assembly(self.hello.maximum + 128, 512)
        self.frames = frames(ada + share + self._down.seal(request), self.tag, self._size)
        self.hint = None

    def notified(self, frame):
        """The answer's envelope once it is whole and opens, else None; plaintext rejects land in `hint`."""
        if frame[1:3] != self.tag:
            return None
        try:
            verdict = self._assembly.take(frame)
        except ProtocolError:
            return None
        if verdict is None:
            return None
        message, plaintext = verdict
        if plaintext:
            self.hint = message
            return None
        return self._up.open(message)

    @property
    def received(self):
        """Bytes of the half message that is coming in."""
        return len(self._assembly.data)

    def opens(self, message, tag=None):
        """Whether anything that this attempt knows opens a message, whatever it was meant as; changes nothing."""
        return any(
            aead(False, message, bytes([direction]) + (tag or self.tag), number.to_bytes(12, "big"), key) is not None
            for key in (self._up.key, self._down.key)
            for direction in (TO_HOST, TO_CLIENT)
            for number in range(4)
        )

    def receipt(self):
        return frames(self._down.seal(b""), self.tag, self._size)
