"""What a client holds to its node, and the blocking driver of an exchange.

A `Link` is shared by all threads of a process. Each call takes a connection from the pool (or dials one), performs the
steps of its exchange and gives the connection back; a connection whose call was broken off is closed, which is also how
the node learns that nobody waits for the answer any more.

Forks: connections and the lease belong to the process that made them. In a child they are closed by a fork hook, or at
its first call when the fork was made behind Python's back; the child then takes a lease of its own.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from hotbed.errors import Error, NodeUnavailable, SandboxGone
from hotbed.sdk.addresses import Address, dial
from hotbed.sdk.calls import Call
from hotbed.sdk.exchange import exchange
from hotbed.sdk.leases import Lease, give_up, take_lease
from hotbed.sdk.pool import ConnectionPool
from hotbed.sdk.steps import Finish, Open, Opened, Pause, Pull, Push, Read, Revive, Step, Write
from hotbed.sdk.tracing import current
from hotbed.wire.routes import API_HEADER, LEASE_HEADER, TRACE_HEADER

if TYPE_CHECKING:
    from hotbed.sdk.async_transport import AsyncDriver

T = TypeVar("T")

LEASE_TIMEOUT_S = 30.0
_GIVE_UP_S = 2.0


class Link:
    """A node's address, the kept connections to it, and the lease held there.

    `revive` is asked, once per failed call, to bring a node back that cannot be reached; it returns its address.
    """

    def __init__(
        self,
        address: Address,
        *,
        api_key: str | None = None,
        traceparent: str = "",
        revive: Callable[[], Address] | None = None,
    ) -> None:
        self.address = address
        self.pool = ConnectionPool()
        self._api_key = api_key
        self._traceparent = traceparent
        self._revive = revive
        self._lease: Lease | None = None
        self._retired: list[Lease] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._async_driver: AsyncDriver | None = None
        self._headers = self._common_headers()
        _LINKS.add(self)

    def _common_headers(self) -> bytes:
        lines = [f"Host: {self.address.authority}", "Content-Type: application/json", "User-Agent: hotbed-python"]
        if self._api_key:
            lines.append(f"Authorization: Bearer {self._api_key}")
            lines.append(f"{API_HEADER}: 1")
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1")

    def send(self, call: Call[T]) -> T:
        """Make a call and wait for its answer."""
        return _perform(self, call)

    async def asend(self, call: Call[T]) -> T:
        """The same under asyncio."""
        if self._async_driver is None:
            from hotbed.sdk.async_transport import AsyncDriver  # asyncio is not for those who do not use it

            self._async_driver = AsyncDriver(self)
        return await self._async_driver.perform(call)

    def headers(self, *, leased: bool) -> bytes:
        """The lines that a request carries. Takes the lease if it is not held; raises OSError."""
        if self._closed:
            raise NodeUnavailable("this client was closed", hint="call connect() again")
        headers = self._headers
        if trace := current(self._traceparent):
            headers += f"{TRACE_HEADER}: {trace}\r\n".encode("ascii")
        if leased:
            headers += f"{LEASE_HEADER}: {self.hold().id}\r\n".encode("ascii")
        elif self._has_lost_lease():
            self.hold()
        return headers

    def has_lease(self) -> bool:
        """Whether the next leased call can go out without taking a lease first."""
        lease = self._lease
        return lease is not None and self._pid == os.getpid() and lease.is_held()

    def hold(self) -> Lease:
        """The lease, taken now if need be. Raises OSError, or the node's refusal."""
        if self._pid != os.getpid():
            self.after_fork()
        with self._lock:
            lease = self._lease
            if lease is None or not lease.is_held():
                if lease is not None:
                    lease.forget()
                self._lease = None
                lease = self._lease = self._take(lease)
            return lease

    def _take(self, lost: Lease | None) -> Lease:
        """The lost lease over another connection, if a remote node still has it; else a new one."""
        if lost is not None and self.address.host is not None:
            try:
                return take_lease(self.address, self._headers, LEASE_TIMEOUT_S, again=lost.id)
            except SandboxGone:
                pass
        return take_lease(self.address, self._headers, LEASE_TIMEOUT_S)

    def _has_lost_lease(self) -> bool:
        """Whether a remote node waits for its lease to be held again, which any call does."""
        return self.address.host is not None and self._lease is not None and not self.has_lease()

    def needs_lease(self, *, leased: bool) -> bool:
        """Whether the next call cannot go out without taking a lease first, which takes a moment."""
        return not self.has_lease() if leased else self._has_lost_lease()

    @property
    def lease(self) -> Lease | None:
        """The lease as it was last seen."""
        return self._lease

    def revive(self, seen: Lease | None) -> bool:
        """Bring a local node back, for a call that had `seen` that lease.

        Of many threads that miss a node, one is the first to hold a lease on the next: the others must not end it.
        False when that is not ours to do; raises why it could not.
        """
        if self._closed:
            return False
        self._retire(seen)
        if self._revive is None:
            return False
        self.address = self._revive()
        self.pool.forget()
        return True

    def _retire(self, seen: Lease | None) -> None:
        """Use a lease for nothing new. What was made under it may run on: its connection is kept while it lasts."""
        with self._lock:
            if seen is not None and self._lease is seen:
                self._lease = None
                self._retired.append(seen)
            ended = [lease for lease in self._retired if not lease.is_held()]
            self._retired = [lease for lease in self._retired if lease not in ended]
        for lease in ended:
            lease.forget()

    def _all_leases(self) -> list[Lease]:
        """Every lease whose connection is here; none of them is used from now on."""
        leases = [*self._retired, *([self._lease] if self._lease is not None else [])]
        self._lease, self._retired = None, []
        return leases

    def after_fork(self) -> None:
        """In a forked child: let go of what is the parent's."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._async_driver = None
        self.pool.forget()
        for lease in self._all_leases():
            lease.forget()

    def close(self) -> None:
        """End the lease and with it everything made under it. Idempotent; in a forked child it ends nothing."""
        if self._pid != os.getpid():
            self.after_fork()
        self._closed = True
        for lease in self._all_leases():
            if self.address.host is not None:
                give_up(self.address, self._headers, lease, _GIVE_UP_S)
            lease.release()
        self.pool.forget()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed


_LINKS: weakref.WeakSet[Link] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for link in list(_LINKS):
        link.after_fork()


os.register_at_fork(after_in_child=_let_go_in_child)


def _perform(link: Link, call: Call[T]) -> T:
    """Drive an exchange with blocking sockets."""
    driver = _Driver(link)
    steps = exchange(call)
    try:
        step = next(steps)
        while True:
            try:
                answer = driver.perform(step)
            except (OSError, Error) as failure:
                if isinstance(step, (Pull, Push)):
                    raise
                step = steps.throw(failure)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        driver.drop()


class _Driver:
    """Performs the steps of one exchange."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lease: Lease | None = None
        self._socket: socket.socket | None = None

    def perform(self, step: Step) -> Any:
        """Do one step and give what it asks for."""
        if isinstance(step, Write):
            self._connection.settimeout(step.timeout_s)
            return self._connection.sendall(step.data)
        if isinstance(step, Read):
            self._connection.settimeout(step.timeout_s)
            return self._connection.recv(step.size)
        if isinstance(step, Open):
            return self._open(step)
        if isinstance(step, Finish):
            return self._finish(reusable=step.reusable)
        return self._perform_rare(step)

    def _perform_rare(self, step: Pull | Push | Pause | Revive) -> Any:
        if isinstance(step, Pull):
            return next(step.source, None)
        if isinstance(step, Push):
            return step.sink.write(step.data)
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        return self._link.revive(self._lease)

    @property
    def _connection(self) -> socket.socket:
        assert self._socket is not None, "an exchange opens before it reads or writes"
        return self._socket

    def _open(self, step: Open) -> Opened:
        self.drop()
        link = self._link
        self._lease = link.lease
        headers = link.headers(leased=step.leased)
        self._lease = link.lease
        self._socket = None if step.fresh else link.pool.take()
        reused = self._socket is not None
        if self._socket is None:
            self._socket = dial(link.address, step.timeout_s)
        remote = link.address.host is not None
        return Opened(reused=reused, headers=headers, prefix=link.address.prefix, remote=remote)

    def _finish(self, *, reusable: bool) -> None:
        connection, self._socket = self._connection, None
        if reusable and not self._link.closed:
            self._link.pool.give(connection)
        else:
            connection.close()

    def drop(self) -> None:
        """Close the connection if the exchange ended in the middle."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


def close_all() -> None:
    """End every lease of this process. What an interpreter that ends normally does."""
    for link in list(_LINKS):
        try:
            link.close()
        except (OSError, Error):
            pass  # the process is ending; the kernel closes the rest
