"""One sandbox as the broker sees it: its doors, its policy, the names it was told, the connections it has."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hotbed.egress.addresses import Address
from hotbed.egress.decisions import Target, Verdict, is_leak
from hotbed.egress.entries import Entry
from hotbed.egress.policy import Policy
from hotbed.egress.secrets import Secret
from hotbed.runtime.egress import sockets
from hotbed.runtime.egress.certificates import Certificates
from hotbed.runtime.egress.doorway import Doorway
from hotbed.runtime.egress.flow import Flow
from hotbed.runtime.egress.names import Names
from hotbed.runtime.egress.pace import NONE_FREE, Pace
from hotbed.runtime.egress.recordings import Recording, Turns
from hotbed.runtime.egress.relay import Pipes
from hotbed.runtime.egress.resolving import Resolver
from hotbed.runtime.egress.tally import Tally

CONNECTIONS_LIMIT = 256
LOOKUPS_LIMIT = 32
IDLE_S = 900.0
_ACCEPT_MOST = 16


class Ward:
    """Until `close`. Nothing of one ward is in another's reach: each has sockets of its own.

    With `on_knock` it is parked: its policy comes by `change` only, and is asked for when something is dialled.
    """

    def __init__(
        self,
        policy: Policy,
        watched: tuple[Entry, ...],
        resolver: Resolver,
        pipes: Pipes,
        pace: Pace,
        *,
        on_knock: Callable[[], None] | None = None,
    ) -> None:
        self.policy = policy
        self.resolver = resolver
        self.pipes = pipes
        self._pace = pace
        self.tally = Tally()
        self.names = Names()
        self.certificates: Certificates | None = None
        self.secrets: tuple[Secret, ...] = ()
        self.recording: Recording | None = None
        self.sealed = False
        self.turns = Turns()
        self.flows: set[Flow] = set()
        self.lookups = asyncio.Semaphore(LOOKUPS_LIMIT)
        self.doorway = Doorway(on_knock)
        self._watched = watched
        self._spent: dict[Entry, int] = {}
        self._counted: dict[Flow, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def open_door(self, door: socket.socket, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        """Accept what is dialled at a listening socket inside; before there is a policy, it waits in the kernel."""
        self.doorway.add(door, partial(self._accept, door, serve))

    def open_datagrams(self, door: socket.socket, on_ready: Callable[[socket.socket], None]) -> None:
        """Hear datagrams at a socket inside."""
        self.doorway.add(door, partial(on_ready, door))

    def start(self, work: Coroutine[Any, Any, None], inner: socket.socket | None = None) -> None:
        """Run something for it, until it is done or the ward is closed; `inner` is closed by then, come what may."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        if inner is not None:
            self._pace.begun()
        task.add_done_callback(partial(self._ended, inner))

    def _ended(self, inner: socket.socket | None, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if inner is not None:
            inner.close()  # a task that is cancelled at once never runs
            self._pace.ended()
        self._pace.resume(self.doorway)  # it has fewer now

    def reads(self, name: str, port: int) -> bool:
        """Whether TLS to this host is ended here, so that what is said inside can be read."""
        if not name or self.certificates is None:
            return False
        return self.policy.reads(name, port) or any(secret.is_for(name, port) for secret in self.secrets)

    def added(self, name: str, port: int) -> list[tuple[bytes, bytes]]:
        """The headers that requests to this host get, inside TLS."""
        found = {secret.header: secret.value for secret in self.secrets if secret.is_for(name, port)}
        return [(header.encode("ascii"), value.encode("ascii")) for header, value in found.items()]

    def is_full(self) -> bool:
        """Whether it may have no more at once."""
        return len(self._tasks) >= CONNECTIONS_LIMIT

    def _accept(self, door: socket.socket, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        for _ in range(_ACCEPT_MOST):
            if not self._pace.admits(len(self._tasks)):
                if not self._pace.has_room(len(self._tasks)):
                    self._rest(door)
                return
            try:
                sock, _ = door.accept()
            except OSError as error:
                if error.errno in NONE_FREE:
                    self._rest(door)
                return  # else nobody waits
            sock.setblocking(False)
            if self.is_full():
                address, port = sockets.meant_for(sock)
                reason = f"more than {CONNECTIONS_LIMIT} connections at once"
                self.refuse("connect", Target(port=port, address=address), reason)
                sockets.reset(sock)
                continue
            self.start(serve(sock), sock)

    def _rest(self, door: socket.socket) -> None:
        """What waits there is accepted when it can be; it would call us in every turn until then."""
        self.doorway.rest(door)
        self._pace.rest(self.doorway)

    def refuse(self, kind: str, target: Target, reason: str) -> None:
        """Count and tell a no that needed no decision."""
        self.tally.count(allowed=False)
        address = str(target.address or "")
        self.tally.note(kind=kind, name=target.name, address=address, port=target.port, verdict="denied", reason=reason)

    def target_of(self, address: Address, port: int) -> Target:
        """What a program meant that dialled this: a name it had looked up, or the address itself."""
        name = self.names.name_of(address)
        return Target(port=port, name=name) if name else Target(port=port, address=address)

    def is_leak(self, verdict: Verdict, name: str) -> bool:
        """Whether a refusal is of what gives answers away."""
        return is_leak(self._watched, verdict, name, self.policy)

    def spend(self, verdict: Verdict | None, total: int, flow: Flow) -> bool:
        """Charge what a flow has carried to its entry's budget; whether that is spent."""
        entry = verdict.entry if verdict is not None else None
        if entry is None or entry.max_bytes is None:
            return False
        self._spent[entry] = self._spent.get(entry, 0) + total - self._counted.get(flow, 0)
        self._counted[flow] = total
        return self._spent[entry] > entry.max_bytes

    def forget(self, flow: Flow) -> None:
        """A flow has ended."""
        self._counted.pop(flow, None)

    def change(self, policy: Policy) -> None:
        """Hold to another policy from now on, connections that live included; a parked one's doors are heard now."""
        self.policy = policy
        self.doorway.open()
        for flow in tuple(self.flows):
            flow.recheck(policy)

    def end_idle(self) -> None:
        """End what has carried nothing for long."""
        oldest = time.monotonic() - IDLE_S
        for flow in tuple(self.flows):
            if flow.used_s < oldest:
                flow.abort(f"nothing was carried for {IDLE_S:.0f} s")

    def shut(self) -> None:
        """Close its doors, and begin to end all that came through them. Idempotent."""
        self.doorway.close()
        self._pace.resume(self.doorway)
        for task in tuple(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """The same, and wait until nothing of it is left."""
        self.shut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
