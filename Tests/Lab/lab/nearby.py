# SPDX-License-Identifier: MIT
"""The `nearby` command under test: started in the guest, its JSON lines read as they come."""
import asyncio
import json
import os
import signal
import time

from . import envelope

#: nearby's exit status where it ended as asked (docs: "exit codes").
SUCCESS = 0


class Nearby:
    """One process. `events` are its stdout's JSON objects, each with the time it came."""

    #: Whether something is typed: its standard input is a pipe then.
    is_typed_to = False

    def __init__(self, lab, *arguments):
        self.lab = lab
        self.arguments = [os.environ["LAB_NEARBY"], *arguments, "--json", "--verbose"]
        self.events = []
        self.garbage = []
        self.errors = b""
        self.process = None
        self._more = asyncio.Event()
        self._ended = None

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.arguments,
            stdin=asyncio.subprocess.PIPE if self.is_typed_to else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        self._ended = asyncio.gather(self._read_events(), self._read_errors(), self.process.wait())
        self.lab.at_end(self.kill)
        self.lab.evidence.append(self)
        return self

    async def _read_events(self):
        async for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                self.garbage.append(line.decode(errors="replace"))
                continue
            event["_time"] = time.monotonic()
            self.events.append(event)
            self._more.set()
        self._more.set()

    async def _read_errors(self):
        while chunk := await self.process.stderr.read(65536):
            self.errors = (self.errors + chunk)[-65536:]

    @property
    def running(self):
        return self.process is not None and self.process.returncode is None

    async def event(self, *names, timeout=20, count=1):
        """The count-th event of one of these names."""
        deadline = asyncio.get_running_loop().time() + self.lab.seconds(timeout)
        while True:
            found = [event for event in self.events if event.get("event") in names]
            if len(found) >= count:
                return found[count - 1]
            if not self.running and self.process.stdout.at_eof():
                ended = f"nearby ended with {self.process.returncode}"
                raise AssertionError(f"{ended} before {'/'.join(names)}{self.tail()}")
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), deadline - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                seen = ", ".join(str(event.get("event")) for event in self.events) or "none"
                raise AssertionError(f"no {'/'.join(names)} within {timeout} s (events: {seen}){self.tail()}") from None

    async def exit(self, timeout=20):
        """Its exit status."""
        try:
            await asyncio.wait_for(asyncio.shield(self._ended), self.lab.seconds(timeout))
        except asyncio.TimeoutError:
            raise AssertionError(f"nearby has not ended within {timeout} s{self.tail()}") from None
        return self.process.returncode

    def tail(self):
        lines = self.errors.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:200]}" if lines else ""

    def send(self, how):
        if self.running:
            self.process.send_signal(how)

    async def kill(self):
        if self.running:
            self.process.kill()
            await self._ended

    def record(self):
        """For a failure's evidence."""
        lines = [" ".join(self.arguments), f"exit status: {self.process.returncode if self.process else 'not started'}"]
        lines += [json.dumps(event) for event in self.events]
        lines += [f"not JSON: {line!r}" for line in self.garbage]
        return "\n".join(lines) + "\n--- stderr\n" + self.errors.decode(errors="replace")


class NearbyDevice(Nearby):
    """`nearby device COMMAND`."""

    is_typed_to = True

    def __init__(self, lab, command, *arguments, adapter="hci1"):
        super().__init__(lab, "device", command, "--adapter", adapter, *arguments)

    async def type(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    async def end_input(self):
        self.process.stdin.close()
        await self.process.stdin.wait_closed()


class NearbyHost:
    """`nearby host`."""

    def __init__(self, lab, adapter="hci0", app=envelope.APP, payload=None, more=(), timeout=None):
        arguments = ["host", "--app-id", app, "--session-id", envelope.SESSION, "--adapter", adapter]
        for key, value in (envelope.PAYLOAD if payload is None else payload).items():
            arguments += ["--payload", f"{key}={value}"]
        if timeout is not None:
            arguments += ["--timeout", f"{timeout}s"]
        self.nearby = Nearby(lab, *arguments, *more)
        self.lab = lab

    async def start(self):
        await self.nearby.start()
        await self.serving()
        return self

    async def serving(self, count=1, timeout=20):
        return await self.nearby.event("serving", timeout=timeout, count=count)

    async def delivered(self, count=1, timeout=20):
        return await self.nearby.event("delivered", timeout=timeout, count=count)

    async def ended(self, timeout=20):
        return await self.nearby.exit(timeout)

    async def stop(self, timeout=10):
        """SIGTERM, as a service manager does; it must unregister and end."""
        self.nearby.send(signal.SIGTERM)
        return await self.nearby.exit(timeout)

    async def kill(self):
        await self.nearby.kill()

    @property
    def running(self):
        return self.nearby.running


class Outcome:
    """How a join ended: `kind` is "handoff", "rejected" or "error"; `said` is an error's text."""

    def __init__(self, kind, message=None, code=None, status=None, said=""):
        self.kind, self.message, self.code, self.status, self.said = kind, message, code, status, said

    def __repr__(self):
        return f"{self.kind}({self.message or self.code}, exit {self.status})"


class NearbyJoin:
    """`nearby join`."""

    def __init__(self, lab, adapter="hci1", app=envelope.APP, timeout=30, more=()):
        self.lab = lab
        self.limit = timeout
        arguments = ["join", "--app-id", app, "--adapter", adapter, "--timeout", f"{timeout}s"]
        self.nearby = Nearby(lab, *arguments, *more)

    async def start(self):
        await self.nearby.start()
        return self

    async def outcome(self, timeout=None):
        status = await self.nearby.exit(self.limit + 10 if timeout is None else timeout)
        results = [event for event in self.nearby.events if event.get("event") in ("handoff", "error")]
        if len(results) > 1:
            raise AssertionError(f"nearby join printed {len(results)} results")
        for event in results:
            if event["event"] == "handoff":
                if status != SUCCESS:
                    raise AssertionError(f"a handoff, but exit status {status}")
                message = {"type": "handoff", "protocolVersion": 1}
                message |= {key: event[key] for key in ("appId", "sessionId", "payload") if key in event}
                return Outcome("handoff", message, status=status)
            if status == SUCCESS or status != event.get("exitCode"):
                raise AssertionError(f"an error that says exit status {event.get('exitCode')}, but {status}")
            if event["code"] == "rejected":
                return Outcome("rejected", code=event.get("reason") or event.get("attError"), status=status)
            return Outcome("error", code=event["code"], status=status, said=event["message"])
        raise AssertionError(f"nearby join ended silently with {status}{self.nearby.tail()}")

    async def kill(self):
        await self.nearby.kill()

    @property
    def running(self):
        return self.nearby.running


class ReferenceHost:
    """The dbus-fast host in `nearby host`'s place."""

    def __init__(self, lab, adapter="hci0", app=envelope.APP, payload=None, more=(), timeout=None):
        from .peers.dbus_host import DBusHost

        self.host = DBusHost(lab, adapter, lambda request: self._answer(request, app, payload))

    @staticmethod
    def _answer(request, app, payload):
        try:
            asked = envelope.decode(request)["appId"]
        except (ValueError, KeyError, TypeError):
            return [envelope.reject("malformed", "-")]
        if asked != app:
            return [envelope.reject("app_mismatch", asked)]
        return [envelope.handoff(app, payload=payload)]

    async def start(self):
        await self.host.start()
        return self

    async def stop(self, timeout=10):
        await self.host.stop()
        return SUCCESS

    kill = stop


class ReferenceJoin:
    """bleak in `nearby join`'s place."""

    def __init__(self, lab, adapter="hci1", app=envelope.APP, timeout=30, more=()):
        from .peers.bleak_client import BleakJoin

        self.app, self.limit, self.task = app, timeout, None
        self.lab = lab
        self.client = BleakJoin(lab, adapter)

    async def start(self):
        self.task = asyncio.ensure_future(self._run())
        self.lab.at_end(self.kill)
        return self

    async def _run(self):
        message = b""
        await self.client.connect()
        try:
            await self.client.subscribe()
            await self.client.write(envelope.join_request(self.app))
            while True:
                message += await asyncio.wait_for(self.client.received.get(), self.lab.seconds(8))
                try:
                    return envelope.decode(message)
                except ValueError:
                    continue
        finally:
            await self.client.client.disconnect()

    async def outcome(self, timeout=None):
        limit = self.lab.seconds(self.limit if timeout is None else timeout)
        try:
            message = await asyncio.wait_for(asyncio.shield(self.task), limit)
        except Exception as error:  # whatever bleak raises is its typed error
            await self.kill()
            return Outcome("error", code=f"{type(error).__name__}: {error}", status=1)
        if message["type"] == "reject":
            return Outcome("rejected", code=message["payload"]["reason"], status=1)
        return Outcome("handoff", message, status=SUCCESS)

    async def kill(self):
        self.task.cancel()
        await asyncio.wait([self.task], timeout=5)
