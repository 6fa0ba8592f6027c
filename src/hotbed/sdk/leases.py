"""A held lease: a connection whose life is the life of everything made under it.

The node writes a byte now and then; nobody here has to read them, but a full socket would stall it, so they are drained
whenever the client makes a call. There is no thread: a trainer that forks stays single-threaded as far as we go.

Over TCP a connection may break though both ends live. The node then keeps such a lease for `ttl_s`, in which the next
call takes it up again over another connection, and a client that is done says so.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from typing import Any

from hotbed.errors import ProtocolError
from hotbed.sdk.addresses import Address, dial
from hotbed.sdk.bodies import read_json
from hotbed.sdk.exchange import error_from
from hotbed.sdk.http import ResponseReader, request_head
from hotbed.wire.codec import from_wire
from hotbed.wire.health import LeaseGranted
from hotbed.wire.routes import HOLD_LEASE, RELEASE_LEASE

_LINE_LIMIT = 64 << 10


@dataclass(slots=True)
class Lease:
    """A granted lease and the connection that holds it."""

    id: str
    ttl_s: float
    connection: socket.socket

    def is_held(self) -> bool:
        """Whether the node still holds it, as far as can be seen without asking. Drains what arrived."""
        try:
            while data := self.connection.recv(4096):
                if len(data) < 4096:
                    return True
        except OSError as reason:
            return _nothing_came(reason)
        return False

    def release(self) -> None:
        """End it now, even if a forked child holds a copy of the connection."""
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the node was first
        self.connection.close()

    def forget(self) -> None:
        """Drop this process's copy of the connection; the lease stays with the process that took it."""
        self.connection.close()


def _nothing_came(reason: OSError) -> bool:
    """Whether it only says that there is nothing to read. TLS has a word of its own for that, which is not imported."""
    tls: Any = sys.modules.get("ssl")
    quiet = (BlockingIOError, InterruptedError, *((tls.SSLWantReadError,) if tls is not None else ()))
    return isinstance(reason, quiet)


def take_lease(address: Address, headers: bytes, timeout_s: float, *, again: str = "") -> Lease:
    """Ask for a lease, or for one held before, and keep the connection. Raises OSError, or the node's own refusal."""
    query = f"?id={again}" if again else "?renew=true" if address.host is not None else ""
    connection = dial(address, timeout_s)
    try:
        connection.sendall(request_head("GET", address.prefix + HOLD_LEASE.path + query, headers, 0))
        granted = _first_line(connection)
        connection.setblocking(False)
    except BaseException:
        connection.close()
        raise
    return Lease(granted.lease_id, granted.ttl_s, connection)


def give_up(address: Address, headers: bytes, lease: Lease, timeout_s: float) -> None:
    """Tell a remote node that a lease is over; one that cannot be told finds out by itself."""
    try:
        connection = dial(address, timeout_s)
    except OSError:
        return
    try:
        path = RELEASE_LEASE.path.format(id=lease.id)
        connection.sendall(request_head("DELETE", address.prefix + path, headers, 0))
        connection.recv(1)
    except OSError:
        pass
    finally:
        connection.close()


def _first_line(connection: socket.socket) -> LeaseGranted:
    reader = ResponseReader()
    line = b""
    while b"\n" not in line:
        reader.feed(connection.recv(4096))
        line += reader.take()
        if reader.complete and reader.status != 200:
            raise error_from(reader, line)
        if reader.complete or len(line) > _LINE_LIMIT:
            raise ProtocolError("the node granted no lease", hint="is the URL that of a Hotbed node?")
    data: Any = read_json(line.partition(b"\n")[0])
    return from_wire(LeaseGranted, data)
