# SPDX-License-Identifier: MIT
"""ATT PDUs out of the recorded HCI traffic: the same packets that `hci.btsnoop` gets."""
import dataclasses

ACL = 2  # HCI's packet type (Core 5.4, Vol 4, Part A, 2)
ATT_CHANNEL = 4
CONTINUED = 1  # the packet boundary flag of what is not the first fragment (Vol 4, Part E, 5.4.2)
READ_REQUESTS = (0x0A, 0x0C)
READ_RESPONSES = (0x0B, 0x0D)
MTU_RESPONSE, READ_BY_GROUP = 0x03, 0x10
WRITE_REQUEST, WRITE_RESPONSE, NOTIFICATION, MULTIPLE_NOTIFICATION, ERROR = 0x12, 0x13, 0x1B, 0x23, 0x01


@dataclasses.dataclass(frozen=True)
class PDU:
    time: float  # of its last fragment
    controller: str
    connection: int
    to_host: bool
    data: bytes

    @property
    def code(self):
        return self.data[0]

    @property
    def handle(self):
        """The attribute that a request or notification is about (responses name none)."""
        return int.from_bytes(self.data[1:3], "little")

    def notified(self):
        """(handle, value) of each value that it notifies."""
        if self.code == NOTIFICATION:
            yield self.handle, self.data[3:]
        elif self.code == MULTIPLE_NOTIFICATION:
            rest = self.data[1:]
            while len(rest) >= 4:
                handle, length = int.from_bytes(rest[:2], "little"), int.from_bytes(rest[2:4], "little")
                yield handle, rest[4 : 4 + length]
                rest = rest[4 + length :]


class Reassembly:
    """ACL fragments in, ATT PDUs out. Linux sends 27 bytes a fragment to these controllers."""

    def __init__(self):
        self._half = {}

    def take(self, moment, controller, to_host, packet):
        """The PDU that is whole with this packet, or None."""
        if packet[0] != ACL or len(packet) < 5:
            return None
        word = int.from_bytes(packet[1:3], "little")
        key, data = (controller, to_host, word & 0x0FFF), packet[5:]
        if word >> 12 & 3 == CONTINUED:
            if key not in self._half:
                return None  # its beginning was before the trace's
            data = self._half.pop(key) + data
        if len(data) < 4:
            self._half[key] = data
            return None
        length = int.from_bytes(data[:2], "little")
        if len(data) - 4 < length:
            self._half[key] = data
            return None
        if int.from_bytes(data[2:4], "little") != ATT_CHANNEL or not length:
            return None
        return PDU(moment, controller, word & 0x0FFF, to_host, bytes(data[4 : 4 + length]))


def pdus(packets, controller=None):
    """The ATT PDUs of a recorder's packets, in order; of one controller, where that is named."""
    reassembly = Reassembly()
    for moment, name, to_host, packet in packets:
        if controller in (None, name):
            pdu = reassembly.take(moment, name, to_host, packet)
            if pdu is not None:
                yield pdu


def arrival(code, attribute, sender):
    """For `Recorder.until`: a request of that code for that attribute, whole, at another controller than its sender."""
    reassembly = Reassembly()

    def arrived(recorded):
        moment, name, to_host, packet = recorded
        pdu = reassembly.take(moment, name, to_host, packet) if to_host and name != sender else None
        return pdu is not None and pdu.code == code and pdu.handle == attribute

    return arrived


def notifications(packets, controller, attribute):
    """{connection: [values]}: what a host behind that controller notified of one attribute, in order."""
    found = {}
    for pdu in pdus(packets, controller):
        if not pdu.to_host:
            for handle, value in pdu.notified():
                if handle == attribute:
                    found.setdefault(pdu.connection, []).append(value)
    return found


COMMAND, EVENT = 1, 4
ADVERTISING_ENABLE, EXTENDED_ADVERTISING_ENABLE = 0x200A, 0x2039  # Vol 4, Part E, 7.8.9 and 7.8.56
DISCONNECTED, LE_META = 0x05, 0x3E
EXTENDED_REPORT = 0x0D  # LE Extended Advertising Report (7.7.65.13)
CONNECTED = (0x01, 0x0A)  # LE (Enhanced) Connection Complete


def link_changes(packets, controller):
    """The times at which a link of this controller began or ended, as (time, "connected" or "disconnected")."""
    for moment, name, to_host, packet in packets:
        if name != controller or not to_host or packet[0] != EVENT:
            continue
        if packet[1] == DISCONNECTED:
            yield moment, "disconnected"
        elif packet[1] == LE_META and packet[3] in CONNECTED and packet[4] == 0:
            yield moment, "connected"


def heard_at(packets, controller, rssi):
    """How often this controller reported an advertiser, or its scan response, with that RSSI."""
    count = 0
    for _, name, to_host, packet in packets:
        if name == controller and to_host and packet[0] == EVENT and packet[1] == LE_META and packet[3] == EXTENDED_REPORT:
            count += int.from_bytes(packet[18:19], "little", signed=True) == rssi
    return count


def advertising_starts(packets, controller):
    """The times at which the host told this controller to advertise."""
    for moment, name, to_host, packet in packets:
        if name == controller and not to_host and packet[0] == COMMAND:
            if int.from_bytes(packet[1:3], "little") in (ADVERTISING_ENABLE, EXTENDED_ADVERTISING_ENABLE) and packet[4]:
                yield moment


CREATE_CONNECTION, EXTENDED_CREATE_CONNECTION = 0x200D, 0x2043  # Vol 4, Part E, 7.8.12 and 7.8.66
REMOVE_ADVERTISING_SET, CLEAR_ADVERTISING_SETS = 0x203C, 0x203D  # 7.8.59 and 7.8.60


def advertises_at_connection(packets, controller):
    """For each connection that the host told this controller to make: whether it was to advertise meanwhile."""
    advertises, found = False, []
    for _, name, to_host, packet in packets:
        if name != controller or to_host or packet[0] != COMMAND:
            continue
        command = int.from_bytes(packet[1:3], "little")
        if command in (ADVERTISING_ENABLE, EXTENDED_ADVERTISING_ENABLE):
            advertises = bool(packet[4])
        elif command in (REMOVE_ADVERTISING_SET, CLEAR_ADVERTISING_SETS):
            advertises = False
        elif command in (CREATE_CONNECTION, EXTENDED_CREATE_CONNECTION):
            found.append(advertises)
    return found
