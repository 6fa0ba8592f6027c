"""The node's handle on its supervisor: begin a pin, ask how it went, and learn at once when one has failed.

A rollout's seed is acknowledged in two steps. `begin` gives the end of a channel that travels to the sandbox with the
request, and `announce` gives the other end to the supervisor; the result is believed only after `report`, which the
supervisor answers because it is alive, and so was throughout. Unasked it reports when the last process has ended, which
it usually has by then. When the supervisor is lost, every pin of it has failed, and the node kills their sandboxes.

A pin that was put on ahead needs no question. What it drew first comes with the result and is compared here; it stands
if nothing was said of it by then, and the supervisor's end of the channel is open. A failure is told before its
listener is closed; and a process that ends closes its lowest descriptors first, of which the channel is one
(`close_files`, fs/file.c).
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hotbed.errors import NotSupported, SandboxFailed
from hotbed.guest.agent.pinning import CHECK_BYTES
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.streams import Streams, first_draw

_MESSAGE_LIMIT = 1 << 16
_PATIENCE_S = 20.0
_ENDING_S = 0.003  # within which a program's process is gone that has announced its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known about a pin. `ack` is `verified` once the sandbox has seen the bytes that its seed implies."""

    ack: str
    pinned: tuple[str, ...]
    counts: dict[str, int]


class Ticket:
    """One pin, as the node holds it, with both ends of its channel until they are on their ways.

    Without a request it is put on `ahead`: what the supervisor said then. `heard` is the next that it says unasked.
    """

    __slots__ = ("ahead", "channel", "end", "final", "heard", "id", "on_failure", "request")

    def __init__(self, pin_id: int, request: PinRequest | None, on_failure: Callable[[str], None]) -> None:
        self.id = pin_id
        self.request = request
        self.on_failure = on_failure
        self.final: dict[str, Any] | None = None
        self.ahead: dict[str, Any] | None = None
        self.heard: asyncio.Future[bool] | None = None
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

    def begin(self, request: PinRequest | None, on_failure: Callable[[str], None]) -> Ticket:
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
            self._post({"op": "pin", "id": ticket.id, **(ticket.request.to_wire() if ticket.request else {})}, end)
        ticket.close_channel()

    def seed(self, ticket: Ticket, request: PinRequest) -> None:
        """Tell what a pin that was put on ahead is pinned by."""
        if self._lost:
            raise SandboxFailed(self._lost)
        ticket.request = request
        self._post({"op": "seed", "id": ticket.id, **request.to_wire()})

    async def put_on(self, ticket: Ticket) -> None:
        """Wait until a process has put its filter on. Raises `SandboxFailed`, and `NotSupported` where none could."""
        known = ticket.ahead is not None  # the supervisor may have told before the agent did
        if not (known or await self._heard(ticket, _PATIENCE_S)) or self._lost:
            raise SandboxFailed(self._lost or "no process was pinned ahead in time")
        if ticket.final is not None:
            raise NotSupported("no process could be pinned ahead")

    async def _heard(self, ticket: Ticket, patience_s: float) -> bool:
        """Whether anything is said of it unasked within so long, or was."""
        if ticket.final is not None or self._lost:
            return True
        heard = ticket.heard = self._loop.create_future()
        timer = self._loop.call_later(patience_s, _tell, heard, False)
        try:
            something: bool = await heard
            return something
        finally:
            timer.cancel()
            ticket.heard = None

    async def wait_ended(self, ticket: Ticket) -> None:
        """Wait a moment for the word that its last process has ended, which comes soon where none was left behind."""
        await self._heard(ticket, _ENDING_S)

    async def report(self, ticket: Ticket) -> Report:
        """How a pin stands now. Raises `SandboxFailed` if anything of it was not, or may not have been, pinned."""
        said = ticket.final or await self._ask(ticket)
        if said["state"] not in ("verified", "pending"):
            raise SandboxFailed(f"the rollout was not kept pinned: {said.get('message') or said['state']}")
        ack = "verified" if said["state"] == "verified" else "no-ack"
        return Report(ack=ack, pinned=tuple(said["pinned"]), counts=said["counts"])

    def compared(self, ticket: Ticket, drawn: bytes) -> Report:
        """The same for one that was put on ahead, by what it drew first."""
        self._read()
        if self._lost or ticket.final is not None or ticket.ahead is None or ticket.request is None:
            raise SandboxFailed(f"the rollout was not kept pinned: {self._lost or (ticket.final or {}).get('message')}")
        if not drawn:
            return Report(ack="no-ack", pinned=(), counts={})
        if not hmac.compare_digest(drawn, first_draw(Streams(ticket.request.seed))[:CHECK_BYTES].hex().encode()):
            raise SandboxFailed("the rollout was not kept pinned: it drew other bytes than the seed implies")
        return Report(ack="verified", pinned=tuple(ticket.ahead["pinned"]), counts={})

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
        while not self._lost:
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
            _tell(ticket.heard, True)
            if failed:
                del self._tickets[ticket.id]
                ticket.on_failure(message["message"])
        elif ticket is not None and message["state"] == "ahead":
            ticket.ahead = message
            _tell(ticket.heard, True)
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
            _tell(ticket.heard, True)
            ticket.on_failure(reason)


def _tell(heard: asyncio.Future[bool] | None, something: bool) -> None:
    if heard is not None and not heard.done():
        heard.set_result(something)


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
