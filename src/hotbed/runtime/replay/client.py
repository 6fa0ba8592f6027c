"""The node's handle on its supervisor: begin a pin, ask how it went, and learn at once when one has failed.

A rollout's seed is acknowledged in two steps. `begin` gives the end of a channel that travels to the sandbox with the
request; what comes back with the result is believed only after `report`, which the supervisor answers because it is
alive, and so was throughout. When the supervisor is lost, every pin of it has failed, and the node kills their
sandboxes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotbed.errors import SandboxFailed
from hotbed.runtime.replay.request import PinRequest

_MESSAGE_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known about a pin. `ack` is `verified` once the sandbox has seen the bytes that its seed implies."""

    ack: str
    pinned: tuple[str, ...]
    counts: dict[str, int]


class Ticket:
    """One pin, as the node holds it. `channel` goes to the sandbox; the node closes its copy when it is sent."""

    __slots__ = ("channel", "final", "id", "on_failure")

    def __init__(self, pin_id: int, channel: int, on_failure: Callable[[str], None]) -> None:
        self.id = pin_id
        self.channel = channel
        self.on_failure = on_failure
        self.final: dict[str, Any] | None = None

    def close_channel(self) -> None:
        """Close the node's copy. Idempotent."""
        if self.channel >= 0:
            os.close(self.channel)
            self.channel = -1


class SupervisorClient:
    """Talks to one supervisor process from an event loop."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        control.setblocking(False)
        self._control = control
        self._loop = loop
        self._ids = itertools.count(1)
        self._tickets: dict[int, Ticket] = {}
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._lost = ""
        self._writable = asyncio.Lock()
        loop.add_reader(control, self._read)

    @property
    def lost(self) -> bool:
        """Whether the supervisor is gone."""
        return bool(self._lost)

    async def begin(self, request: PinRequest, on_failure: Callable[[str], None]) -> Ticket:
        """Announce a pin. `on_failure` is called at most once, with the reason, as soon as it is known."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, there:
            ticket = Ticket(next(self._ids), there.fileno(), on_failure)
            self._tickets[ticket.id] = ticket
            try:
                await self._send({"op": "pin", "id": ticket.id, **request.to_wire()}, here.fileno())
            except SandboxFailed:
                self._tickets.pop(ticket.id, None)
                raise
            there.detach()
        return ticket

    async def report(self, ticket: Ticket) -> Report:
        """How a pin stands now. Raises `SandboxFailed` if anything of it was not, or may not have been, pinned."""
        said = ticket.final or await self._ask(ticket)
        if said["state"] not in ("verified", "pending"):
            raise SandboxFailed(f"the rollout was not kept pinned: {said.get('message') or said['state']}")
        ack = "verified" if said["state"] == "verified" else "no-ack"
        return Report(ack=ack, pinned=tuple(said["pinned"]), counts=said["counts"])

    async def _ask(self, ticket: Ticket) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._asked[ticket.id] = answer
        try:
            await self._send({"op": "report", "id": ticket.id})
            return await answer
        finally:
            self._asked.pop(ticket.id, None)

    def drop(self, ticket: Ticket) -> None:
        """Hear no more of a pin. Idempotent."""
        ticket.close_channel()
        if self._tickets.pop(ticket.id, None) is not None and not self._lost:
            try:
                self._control.send(json.dumps({"op": "drop", "id": ticket.id}).encode())
            except OSError:
                pass  # full or gone: it only keeps a small record longer

    def close(self) -> None:
        """End the supervisor, by the end of its channel. Idempotent."""
        self._lose("the supervisor was closed")

    async def _send(self, message: dict[str, Any], *fds: int) -> None:
        data = json.dumps(message).encode()
        async with self._writable:
            while not self._lost:
                try:
                    socket.send_fds(self._control, [data], list(fds))
                    return
                except BlockingIOError:
                    await self._wait_writable()
                except OSError as error:
                    self._lose(f"the supervisor is gone: {error}")
        raise SandboxFailed(self._lost)

    async def _wait_writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._control, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(self._control)

    def _read(self) -> None:
        while True:
            try:
                data = self._control.recv(_MESSAGE_LIMIT)
            except BlockingIOError:
                return
            except OSError as error:
                data = b""
                self._lose(f"the supervisor is gone: {error}")
            if not data:
                self._lose("the supervisor is gone")
                return
            self._hear(json.loads(data))

    def _hear(self, message: dict[str, Any]) -> None:
        ticket = self._tickets.get(message["id"])
        failed = message["state"] == "failed"
        if ticket is not None and ticket.final is None and (failed or message.get("ended")):
            ticket.final = message
            if failed:
                del self._tickets[ticket.id]
                ticket.on_failure(message["message"])
        answer = self._asked.get(message["id"])
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _lose(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = reason
        self._loop.remove_reader(self._control)
        self._control.close()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(SandboxFailed(f"the rollout was not kept pinned: {reason}"))
        tickets, self._tickets = self._tickets, {}
        for ticket in tickets.values():
            ticket.on_failure(reason)
