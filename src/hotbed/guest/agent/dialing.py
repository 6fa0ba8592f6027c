"""Connects to what listens inside the sandbox, and gives the node the connected socket.

A socket belongs to the network namespace in which it was made, for as long as it is open: what the node gets leads into
this sandbox's loopback and nowhere else, without a port of the host's and without a route between the two.
"""

from __future__ import annotations

import errno
import socket
from typing import List, Optional, Tuple

from ..frames import Header
from .box import Box
from .file_ops import refuse
from .loop import OUT, Timer
from .request import Refused

PATIENCE_S = 5.0
_PLACES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def dial(box: Box, header: Header) -> None:
    """Answer with a connected socket, or say that nothing listens there."""
    port = header.get("port")
    if type(port) is not int or not 0 < port < 1 << 16:
        raise Refused("bad_request", f"port must be 1 to 65535, not {port!r:.64}")
    box.open()
    Dial(box, header, port).next()


class Dial:
    """One attempt after the other, none of which holds up the loop."""

    def __init__(self, box: Box, header: Header, port: int) -> None:
        self._box = box
        self._header = header
        self._port = port
        self._left: List[Tuple[int, str]] = list(_PLACES)
        self._sock: Optional[socket.socket] = None
        self._timer: Optional[Timer] = None

    def next(self) -> None:
        """Try the next address; after the last, say that it was in vain."""
        while self._left:
            family, host = self._left.pop(0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            except OSError:
                continue
            outcome = sock.connect_ex((host, self._port))
            if outcome == 0:
                self._answer(sock)
                return
            if outcome == errno.EINPROGRESS:
                self._await(sock)
                return
            sock.close()
        refuse(self._box, self._header, "refused", f"nothing in the sandbox listens on port {self._port}")

    def _await(self, sock: socket.socket) -> None:
        self._sock = sock
        self._box.loop.watch(sock.fileno(), self._ready, OUT)
        self._timer = self._box.loop.after(PATIENCE_S, self._ready)

    def _ready(self) -> None:
        """It is connected, was refused, or has taken too long."""
        sock, timer = self._sock, self._timer
        assert sock is not None and timer is not None
        self._sock = self._timer = None
        timer.cancel()
        self._box.loop.unwatch(sock.fileno())
        try:
            sock.getpeername()
        except OSError:
            sock.close()
            self.next()
        else:
            self._answer(sock)

    def _answer(self, sock: socket.socket) -> None:
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._box.send({"op": "dialed", "id": self._header.get("id")}, b"", [sock.fileno()])
