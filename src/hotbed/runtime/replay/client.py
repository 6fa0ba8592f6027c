"""The node's handle on its supervisor: begin a pin, ask how it went, and learn at once when one has failed.

A rollout's seed is acknowledged in two steps. `begin` gives the end of a channel that travels to the sandbox with the
request, and `announce` gives the other end to the supervisor; the result is believed only after `report`, which the
supervisor answers because it is alive, and so was throughout. When the supervisor is lost, every pin of it has failed,
and the node kills their sandboxes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hotbed.errors import SandboxFailed
from hotbed.runtime.replay.request import PinRequest

_MESSAGE_LIMIT = 1 << 16
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known about a pin. `ack` is `verified` once the sandbox has seen the bytes that its seed implies."""

    ack: str
    pinned: tuple[str, ...]
    counts: dict[str, int]


class Ticket:
    """One pin, as the node holds it, with both ends of its channel until they are on their ways."""

    __slots__ = ("channel", "end", "final", "id", "on_failure", "request")

    def __init__(self, pin_id: int, request: PinRequest, on_failure: Callable[[str], None]) -> None:
        self.id = pin_id
        self.request = request
        self.on_failure = on_failure
        self.final: dict[str, Any] | None = None
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.end, self.channel = here.detach(), there.detach()

    def take_end(self) -> int:
        """The supervisor's end, to be closed by the caller."""
        end, self.end = self.end, -1
        return end

    def close_channel(self) -> None:
        """Close what the node still has of the channel. Idempotent."""
        for fd in (self.channel, self.take_end()):
            if fd >= 0:
                os.close(fd)
        self.channel = -1


class SupervisorClient:
    """Talks to one supervisor process from an event loop. What does not go out at once waits in its order."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        control.setblocking(False)
        self._control = control
        self._loop = loop
        self._ids = itertools.count(1)
        self._tickets: dict[int, Ticket] = {}
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._lost = ""
        loop.add_reader(control, self._read)

    @property
    def lost(self) -> bool:
        """Whether the supervisor is gone."""
        return bool(self._lost)

    def begin(self, request: PinRequest, on_failure: Callable[[str], None]) -> Ticket:
        """A pin to be announced. `on_failure` is called at most once, with the reason, as soon as it is known."""
        if self._lost:
            raise SandboxFailed(self._lost)
        ticket = Ticket(next(self._ids), request, on_failure)
        self._tickets[ticket.id] = ticket
        return ticket

    def announce(self, ticket: Ticket) -> None:
        """Tell the supervisor, once the channel is on its way to the sandbox: both get ready at the same time."""
        end = ticket.take_end()
        if end >= 0:
            self._post({"op": "pin", "id": ticket.id, **ticket.request.to_wire()}, end)
        ticket.close_channel()

    async def report(self, ticket: Ticket) -> Report:
        """How a pin stands now. Raises `SandboxFailed` if anything of it was not, or may not have been, pinned."""
        said = ticket.final or await self._ask(ticket)
        if said["state"] not in ("verified", "pending"):
            raise SandboxFailed(f"the rollout was not kept pinned: {said.get('message') or said['state']}")
        ack = "verified" if said["state"] == "verified" else "no-ack"
        return Report(ack=ack, pinned=tuple(said["pinned"]), counts=said["counts"])

    async def _ask(self, ticket: Ticket) -> dict[str, Any]:
        if self._lost:  # between the program's end and this question
            raise SandboxFailed(f"the rollout was not kept pinned: {self._lost}")
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._asked[ticket.id] = answer
        try:
            self._post({"op": "report", "id": ticket.id})
            return await asyncio.wait_for(answer, _PATIENCE_S)
        except asyncio.TimeoutError:
            self._lose(f"the supervisor gave no answer for {_PATIENCE_S:.0f} s")
            raise SandboxFailed(self._lost) from None
        finally:
            self._asked.pop(ticket.id, None)

    def drop(self, ticket: Ticket) -> None:
        """Hear no more of a pin. Idempotent."""
        ticket.close_channel()
        if self._tickets.pop(ticket.id, None) is not None and ticket.final is None and not self._lost:
            self._post({"op": "drop", "id": ticket.id})

    def close(self) -> None:
        """End the supervisor, by the end of its channel. Idempotent."""
        self._lose("the supervisor was closed")

    def _post(self, message: dict[str, Any], *fds: int) -> None:
        """Send a message; the descriptors are closed when it is gone."""
        if self._lost:
            _close_all(fds)
            return
        self._unsent.append((json.dumps(message).encode(), fds))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._unsent:
            data, fds = self._unsent[0]
            try:
                socket.send_fds(self._control, [data], fds)
            except BlockingIOError:
                self._loop.add_writer(self._control, self._flush)
                return
            except OSError as error:
                self._lose(f"the supervisor is gone: {error}")
                return
            self._unsent.popleft()
            _close_all(fds)
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
        self._loop.remove_writer(self._control)
        self._control.close()
        while self._unsent:
            _close_all(self._unsent.popleft()[1])
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(SandboxFailed(f"the rollout was not kept pinned: {reason}"))
        tickets, self._tickets = self._tickets, {}
        for ticket in tickets.values():
            ticket.on_failure(reason)


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
