# SPDX-License-Identifier: MIT
"""The virtual radio: Bumble's controllers on one medium, mended where they differ from a controller in a way that
BlueZ notices. Written against bumble 0.0.236 (bumble/controller.py, bumble/link.py); each mend says what it is for.

It is no radio: neither scan timing nor air time is modelled.
"""
import asyncio
import contextlib
import struct
import time

from bumble import core, hci, ll
from bumble.controller import Controller
from bumble.link import LocalLink

#: Seconds a PDU takes from one controller to another. With none, the kernel sees events in an order that no radio
#: produces (data before the connection's own event), and first connections fail.
LATENCY = 0.02
DEFAULT_RSSI = -50
#: How many advertising sets an adapter has. Those in the field have 4 to 16, Bumble's 240.
ADVERTISING_SETS = 5
CONNECTION_TIMEOUT = 0x08  # Core 5.4, Vol 1, Part F, 2.8: the link's supervision time-out
UNKNOWN_CONNECTION = 0x02
ENDED_BY_THIS_HOST = 0x16  # Connection Terminated By Local Host


class Medium(LocalLink):
    """What the controllers share."""

    def __init__(self, latency=LATENCY):
        super().__init__()
        self.latency = latency
        self.silent = set()  # names of controllers whose data is lost in both directions
        self.hidden = set()  # names of controllers whose advertisements nobody hears

    def _later(self, function, *arguments):
        asyncio.get_running_loop().call_later(self.latency, function, *arguments)

    # Mend: the stock link names the sender by its random address, so that everything a Linux host sends from its
    # public address is dropped at the other end. The connection knows which address it was made with.
    def send_acl_data(self, sender_controller, destination_address, transport, data):
        if transport != core.PhysicalTransport.LE:
            super().send_acl_data(sender_controller, destination_address, transport, data)
            return
        connection = sender_controller.le_connections.get(destination_address)
        receiver = self.find_le_controller(destination_address)
        if connection is None or receiver is None:
            return
        if sender_controller.name in self.silent or receiver.name in self.silent:
            return
        self._later(receiver.on_link_acl_data, connection.self_address, transport, data)

    # Mend: the stock link raises when the other side has gone meanwhile, in the middle of a controller's own work.
    def send_ll_control_pdu(self, sender_address, receiver_address, packet):
        receiver = self.find_le_controller(receiver_address)
        if receiver is not None:
            self._later(receiver.on_ll_control_pdu, sender_address, packet)

    # Mend: a connect indication is delivered at once. Delivered later, two centrals that hear the same advertisement
    # both believe that they are connected, and one of them talks to nobody.
    def send_advertising_pdu(self, sender_controller, packet):
        if isinstance(packet, ll.ConnectInd):
            advertiser = self.advertiser(packet.advertiser_address)
            if advertiser is not None:
                advertiser.controller.on_le_connect_ind(packet)
            return
        super().send_advertising_pdu(sender_controller, packet)

    def advertiser(self, address):
        """The enabled advertiser or advertising set behind an address, or None."""
        for controller in self.controllers:
            if controller.name in self.hidden:
                continue
            for advertiser in (controller.le_legacy_advertiser, *controller.advertising_sets.values()):
                if advertiser.enabled and advertiser.address == address:
                    return advertiser
        return None

    def links_of(self, name):
        """The links that the controller of this name has, as `links` tells them."""
        return [link for link in self.links() if name in (link[0].name, link[2] and link[2].name)]

    def links(self):
        """Each link once: (central, its connection, peripheral, its connection); a half-open one has None there."""
        for controller in self.controllers:
            for connection in controller.le_connections.values():
                other = self.find_le_controller(connection.peer_address)
                back = other.le_connections.get(connection.self_address) if other else None
                if connection.role == hci.Role.CENTRAL or back is None:
                    yield controller, connection, other, back

    def drop(self, names=None, reason=CONNECTION_TIMEOUT):
        """Ends links as if their supervision time-out had passed: both sides hear it, neither said goodbye.
        With names, only the links that one of these controllers has. Returns how many."""
        found = [link for link in self.links() if not names or {link[0].name, link[2] and link[2].name} & set(names)]
        for controller, connection, other, back in found:
            controller.on_le_disconnected(connection, reason)
            if back is not None:
                other.on_le_disconnected(back, reason)
        return len(found)


class LabController(Controller):
    """A controller on the medium. Its `rssi` is what others hear of it; it may be changed at any time."""

    def __init__(self, name, medium, host_source=None, host_sink=None, public_address=None, recorder=None):
        self.rssi = DEFAULT_RSSI
        self.drop_duplicates = False  # report an advertiser once a scan when the host asks for it, as many radios do
        self.reported = set()
        self.recorder = recorder
        super().__init__(name, host_source, host_sink, medium, public_address)

    def on_packet(self, packet):
        if self.recorder is not None:
            self.recorder.record(self.name, packet, to_host=False)
        super().on_packet(packet)

    # Mend: Linux waits for the *Enhanced* Connection Complete where it asked for it; the stock controller sends only
    # the older event, the kernel keeps waiting, and turns a later disconnect into a cancellation that gets no answer.
    # Its peripheral side also claims an interval of 10 and a supervision time-out of 100 ms.
    def send_hci_packet(self, packet):
        if isinstance(packet, hci.HCI_LE_Connection_Complete_Event):
            packet.connection_interval = max(packet.connection_interval, 24)
            packet.supervision_timeout = max(packet.supervision_timeout, 100)
            if self.le_event_mask & (1 << 9):
                packet = hci.HCI_LE_Enhanced_Connection_Complete_Event(
                    status=packet.status,
                    connection_handle=packet.connection_handle,
                    role=packet.role,
                    peer_address_type=packet.peer_address_type,
                    peer_address=packet.peer_address,
                    local_resolvable_private_address=hci.Address.ANY,
                    peer_resolvable_private_address=hci.Address.ANY,
                    connection_interval=packet.connection_interval,
                    peripheral_latency=packet.peripheral_latency,
                    supervision_timeout=packet.supervision_timeout,
                    central_clock_accuracy=packet.central_clock_accuracy,
                )
        if self.recorder is not None:
            self.recorder.record(self.name, bytes(packet), to_host=True)
        super().send_hci_packet(packet)

    # Mend: the stock report has a constant RSSI and repeats the advertisement as scan response. Here the advertiser's
    # own RSSI and scan response; an empty one too, because the kernel holds a scannable advertisement back until
    # its response has come.
    def on_advertising_pdu(self, pdu):
        address = pdu.advertiser_address
        advertiser = self.link.advertiser(address)
        if advertiser is None:
            return
        if self.le_scan_enable and not (self.filter_duplicates and self.drop_duplicates and address in self.reported):
            self.reported.add(address)
            response = bytes(advertiser.scan_response_data)
            for kind, data in (("advertisement", pdu.data), ("response", response)):
                self.send_hci_packet(self._report(kind, address, data, advertiser.controller.rssi))
        pending = self.pending_le_connection
        if pending is not None and pending.peer_address == address:
            self.create_le_connection(address)

    def _report(self, kind, address, data, rssi):
        if self.le_features & hci.LeFeatureMask.LE_EXTENDED_ADVERTISING:
            event = hci.HCI_LE_Extended_Advertising_Report_Event
            report = event.Report(
                event_type=0x13 if kind == "advertisement" else 0x1B,  # legacy ADV_IND and its SCAN_RSP
                address_type=address.address_type,
                address=address,
                primary_phy=1,
                secondary_phy=0,
                advertising_sid=0xFF,
                tx_power=127,
                rssi=rssi,
                periodic_advertising_interval=0,
                direct_address_type=0,
                direct_address=hci.Address.ANY,
                data=data,
            )
        else:
            event = hci.HCI_LE_Advertising_Report_Event
            report = event.Report(
                event_type=0 if kind == "advertisement" else 4,
                address_type=address.address_type,
                address=address,
                data=data,
                rssi=rssi,
            )
        return event([report])

    def on_hci_le_set_scan_enable_command(self, command):
        self.reported.clear()
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_set_extended_scan_enable_command(self, command):
        self.reported.clear()
        return super().on_hci_le_set_extended_scan_enable_command(command)

    # Mend: enabling a set that is enabled already starts a second timer in the stock controller, which never ends.
    def on_hci_le_set_extended_advertising_enable_command(self, command):
        if command.enable:
            for handle in command.advertising_handles:
                if handle in self.advertising_sets:
                    self.advertising_sets[handle].stop()
        return super().on_hci_le_set_extended_advertising_enable_command(command)

    def on_hci_le_read_number_of_supported_advertising_sets_command(self, command):
        return hci.HCI_LE_Read_Number_Of_Supported_Advertising_Sets_ReturnParameters(
            status=hci.HCI_ErrorCode.SUCCESS, num_supported_advertising_sets=ADVERTISING_SETS
        )

    # Mend: the stock command answers success and forgets nothing, so a cancelled connection still comes about later.
    # Core 5.4, Vol 4, Part E, 7.8.13: the Connection Complete event follows, with Unknown Connection Identifier.
    def on_hci_le_create_connection_cancel_command(self, command):
        pending, self.pending_le_connection = self.pending_le_connection, None
        if pending is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        asyncio.get_running_loop().call_soon(
            self.send_hci_packet,
            hci.HCI_LE_Connection_Complete_Event(
                status=UNKNOWN_CONNECTION,
                connection_handle=0,
                role=hci.Role.CENTRAL,
                peer_address_type=pending.peer_address_type,
                peer_address=pending.peer_address,
                connection_interval=0,
                peripheral_latency=0,
                supervision_timeout=0,
                central_clock_accuracy=0,
            ),
        )
        return super().on_hci_le_create_connection_cancel_command(command)

    # Mend: the stock HCI_Reset does nothing, so that a restarted host leaves its old advertisements on the air.
    def on_hci_reset_command(self, command):
        self.fall_silent()
        return super().on_hci_reset_command(command)

    @property
    def advertises(self):
        return any(each.enabled for each in (self.le_legacy_advertiser, *self.advertising_sets.values()))

    def stop_advertising(self):
        self.le_legacy_advertiser.stop()
        for advertising_set in self.advertising_sets.values():
            advertising_set.stop()
        self.advertising_sets.clear()

    def fall_silent(self):
        """No advertising, scanning or connecting; peers lose their links by time-out."""
        self.stop_advertising()
        self.le_scan_enable = False
        self.pending_le_connection = None
        self.le_event_mask = 0x1F  # the default after a reset (7.8.1)
        for connection in list(self.le_connections.values()):
            connection.send_ll_control_pdu(ll.TerminateInd(CONNECTION_TIMEOUT))
            self.le_connections.pop(connection.peer_address, None)

    # Mend: the stock controller tells whoever ends a link the reason that he gave for the other side. A controller says
    # that its own host has ended it (Core 5.4, Vol 4, Part E, 7.7.5), and bluetoothd 5.87 hands the reason on.
    def on_hci_disconnect_command(self, command):
        connection = self.find_le_connection_by_handle(command.connection_handle)
        if connection is None:
            return super().on_hci_disconnect_command(command)
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        connection.send_ll_control_pdu(ll.TerminateInd(command.reason))
        self.on_le_disconnected(connection, ENDED_BY_THIS_HOST)
        return None

    # A link that one side has ended while the other's own ending was on its way: not an error, but not silent either.
    def on_le_disconnected(self, connection, reason):
        if self.le_connections.get(connection.peer_address) is connection:
            super().on_le_disconnected(connection, reason)


class Recorder:
    """HCI traffic of a case, kept in memory, written as btsnoop when the case has failed. Bounded: the newest stay."""

    LIMIT = 20_000
    EPOCH = 0x00DCDDB30F2F8000  # btsnoop counts microseconds from the year 0; this is 1970

    def __init__(self):
        self.packets = []
        self._awaited = []

    def clear(self):
        self.packets.clear()

    def record(self, name, packet, to_host):
        if len(self.packets) >= self.LIMIT:
            del self.packets[: self.LIMIT // 4]
        self.packets.append((time.time(), name, to_host, packet))
        for wanted, found in self._awaited:
            if not found.done() and wanted(self.packets[-1]):
                found.set_result(None)

    @contextlib.asynccontextmanager
    async def until(self, wanted, timeout):
        """Leaves the block once a packet has come of which `wanted((time, controller, to host, packet))` is true,
        within the block or after it."""
        awaited = (wanted, asyncio.get_running_loop().create_future())
        self._awaited.append(awaited)
        try:
            yield
            await asyncio.wait_for(awaited[1], timeout)
        finally:
            self._awaited.remove(awaited)

    def write(self, path):
        """In the monitor's format: tshark shows `hci_mon.adapter_id`; adapters.txt beside it names the ids."""
        adapters = []
        with open(path, "wb") as file:
            file.write(b"btsnoop\0" + struct.pack(">II", 1, 2001))
            for moment, name, to_host, packet in self.packets:
                if name not in adapters:
                    adapters.append(name)
                opcode = {1: 2, 4: 3, 2: 5 if to_host else 4}.get(packet[0])
                if opcode is None:
                    continue
                flags = adapters.index(name) << 16 | opcode
                length = len(packet) - 1
                file.write(struct.pack(">IIIIQ", length, length, flags, 0, int(moment * 1e6) + self.EPOCH))
                file.write(packet[1:])
        return adapters
