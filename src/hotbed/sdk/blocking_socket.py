"""A WebSocket for threads: one may read while another writes.

The socket never blocks inside a call, also not under TLS: there, reading and writing at once from two threads is not
what one TLS object can do, so each step is taken under a lock, and waiting happens outside of it.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from time import monotonic

from hotbed.errors import NodeUnavailable
from hotbed.sdk.addresses import dial
from hotbed.sdk.transport import Link
from hotbed.sdk.websocket import CLOSE, PING, PONG, Message, SocketReader, frame, upgrade_request

_RECEIVE = 256 << 10
_OPEN_S = 30.0


class BlockingSocket:
    """An open WebSocket to a node."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._reader = SocketReader()
        self._stepping = threading.Lock()
        self._writing = threading.Lock()
        self._pid = os.getpid()
        self._closed = False

    @classmethod
    def open(cls, link: Link, target: str) -> BlockingSocket:
        """Dial and upgrade. Raises the node's refusal, or `NodeUnavailable`."""
        try:
            made = cls(dial(link.address, _OPEN_S))
        except OSError as reason:
            raise NodeUnavailable(f"no node answers: {reason}") from reason
        try:
            made._write(upgrade_request(link.address.prefix + target, link.headers(leased=False)))
            deadline = monotonic() + _OPEN_S
            while not made._reader.is_open:
                made._reader.feed(made._read(deadline))
        except OSError as reason:
            made.close()
            raise NodeUnavailable(f"the node went away: {reason}") from reason
        except BaseException:
            made.close()
            raise
        return made

    def send(self, kind: int, data: bytes) -> None:
        """Send one message. Raises OSError."""
        with self._writing:
            self._write(frame(kind, data))

    def receive(self, timeout_s: float | None = None) -> Message:
        """The next message but pings. Raises TimeoutError, OSError, `ProtocolError`."""
        deadline = None if timeout_s is None else monotonic() + timeout_s
        while True:
            message = self._reader.message()
            if message is None:
                self._reader.feed(self._read(deadline))
            elif message[0] == PING:
                self.send(PONG, message[1])
            elif message[0] != PONG:
                return message

    def close(self) -> None:
        """Hang up. Idempotent; in a forked child of its owner only the child lets go."""
        if self._closed:
            return
        self._closed = True
        if self._pid == os.getpid():
            self._hang_up()
        self._connection.close()

    def _hang_up(self) -> None:
        try:
            with self._stepping:
                self._connection.send(frame(CLOSE, b""))
        except OSError:
            pass  # it is gone, or full: the end of the connection says the same
        try:
            self._connection.shutdown(socket.SHUT_RDWR)  # a thread that waits to read wakes up
        except OSError:
            pass

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                with self._stepping:
                    left = left[self._connection.send(left) :]
            except (BlockingIOError, _WantWrite):
                self._wait(select.POLLOUT, None)
            except _WantRead:
                self._wait(select.POLLIN, None)

    def _read(self, deadline: float | None) -> bytes:
        while True:
            try:
                with self._stepping:
                    return self._connection.recv(_RECEIVE)
            except (BlockingIOError, _WantRead):
                self._wait(select.POLLIN, deadline)
            except _WantWrite:
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        try:
            poll.register(self._connection, event)
        except ValueError:  # it has no descriptor any more
            raise ConnectionAbortedError("it was closed here") from None
        left_ms = None if deadline is None else max(0.0, deadline - monotonic()) * 1e3
        if not poll.poll(left_ms):
            raise TimeoutError


try:
    from ssl import SSLWantReadError as _WantRead
    from ssl import SSLWantWriteError as _WantWrite
except ImportError:  # a Python without TLS reaches local nodes
    _WantRead = _WantWrite = BlockingIOError  # type: ignore[misc,assignment]  # what is never raised then
