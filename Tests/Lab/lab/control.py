# SPDX-License-Identifier: MIT
"""The control channel: a Unix socket in the guest, one JSON object a line each way.

    {"do": "links"}                                     all links: central, peripheral, addresses
    {"do": "drop", "of": "hci0", "reason": 8}           ends links; both sides hear Disconnection Complete
    {"do": "silence", "of": "hci0", "on": true}         loses all ACL data of a controller, the link stays
    {"do": "rssi", "of": "hci1", "value": -70}          what others hear of a controller
    {"do": "range", "of": "hci0", "on": false}          nobody hears its advertisements, or can connect to it
    {"do": "power", "of": "hci0", "on": false}          Adapter1.Powered
    {"do": "restart"}                                   kills bluetoothd and starts it again; answers when it is back
    {"do": "latency", "seconds": 0.02}                  a hop's
    {"do": "unplug", "of": "hci1"} / {"do": "plug", "of": "hci1"}
    {"do": "controllers"}                               names and addresses
    {"do": "peripheral", "name": "HOST", "mtu": 185}    a Bumble host that hands off
    {"do": "join"}                                      a Bumble central joins once; its answer
"""
import asyncio
import json
import os

SOCKET = "/run/lab.sock"


class ControlChannel:
    def __init__(self, lab, path=SOCKET):
        self.lab = lab
        self.path = path

    async def open(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        return await asyncio.start_unix_server(self._serve, self.path, limit=65536)

    async def _serve(self, reader, writer):
        try:
            while line := await reader.readline():
                try:
                    answer = await self.perform(json.loads(line))
                except Exception as error:  # the one who typed it shall read it
                    answer = {"error": f"{type(error).__name__}: {error}"}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        finally:
            writer.close()

    def _controller(self, name):
        for controller in self.lab.medium.controllers:
            if name in (controller.name, controller.name.split("#")[0]):
                return controller
        raise KeyError(f"no controller {name!r}")

    async def perform(self, command):
        lab, medium = self.lab, self.lab.medium
        match command.get("do"):
            case "links":
                return {
                    "links": [
                        {
                            "of": [controller.name, other.name if other else None],
                            "addresses": [str(connection.self_address), str(connection.peer_address)],
                            "halfOpen": back is None,
                        }
                        for controller, connection, other, back in medium.links()
                    ]
                }
            case "drop":
                names = [self._controller(command["of"]).name] if "of" in command else None
                return {"dropped": medium.drop(names, int(command.get("reason", 8)))}
            case "silence":
                name = self._controller(command["of"]).name
                (medium.silent.add if command.get("on", True) else medium.silent.discard)(name)
                return {"silent": sorted(medium.silent)}
            case "rssi":
                self._controller(command["of"]).rssi = max(-127, min(127, int(command["value"])))
                return {"ok": True}
            case "range":
                name = self._controller(command["of"]).name
                (medium.hidden.discard if command.get("on", True) else medium.hidden.add)(name)
                return {"hidden": sorted(medium.hidden)}
            case "power":
                await lab.power(command["of"], bool(command["on"]))
                return {"ok": True}
            case "restart":
                await lab.restart_bluetoothd(pause=0.3)
                return {"ok": True}
            case "latency":
                medium.latency = max(0.0, min(5.0, float(command["seconds"])))
                return {"ok": True}
            case "unplug":
                lab.adapter(command["of"]).unplug()
                return {"ok": True}
            case "plug":
                adapter = await lab.adapter(command["of"]).plug()
                return {"name": adapter.name}
            case "controllers":
                return {
                    "controllers": [
                        {"name": each.name, "public": str(each.public_address), "random": str(each.random_address)}
                        for each in medium.controllers
                    ]
                }
            case "peripheral":
                from .peers.peripheral import Peripheral

                host = Peripheral(lab, name=command.get("name", "HOST"), mtu=int(command.get("mtu", 185)))
                await host.start()
                return {"name": host.name}
            case "join":
                from .peers.central import Central

                return {"answer": await Central.iphone(lab).join()}
            case unknown:
                raise ValueError(f"unknown command {unknown!r}")
