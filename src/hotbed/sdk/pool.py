"""Kept connections to one node, shared by every thread and event loop of a process."""

from __future__ import annotations

import os
import select
import socket
from collections import deque

_KEPT = 512


class ConnectionPool:
    """Idle sockets, last used first. Appends and pops of a deque are atomic, so there is no lock.

    A socket belongs to the process that opened it: after a fork the child closes its copies and starts empty.
    """

    def __init__(self) -> None:
        self._idle: deque[socket.socket] = deque()
        self._pid = os.getpid()

    def take(self) -> socket.socket | None:
        """A kept connection that is still quiet, or None."""
        if self._pid != os.getpid():
            self.forget()
        while True:
            try:
                kept = self._idle.pop()
            except IndexError:
                return None
            if is_quiet(kept):
                return kept
            kept.close()

    def give(self, used: socket.socket) -> None:
        """Keep a connection whose last answer was read to its end."""
        if self._pid == os.getpid() and len(self._idle) < _KEPT:
            self._idle.append(used)
        else:
            used.close()

    def forget(self) -> None:
        """Close everything kept. In a forked child this leaves the parent's connections alone."""
        self._pid = os.getpid()
        while self._idle:
            self._idle.pop().close()


def is_quiet(kept: socket.socket) -> bool:
    """Whether nothing has arrived on an idle connection: bytes or an end there mean that it is dead."""
    poll = select.poll()
    try:
        poll.register(kept, select.POLLIN)
    except ValueError:  # closed under us
        return False
    return not poll.poll(0)
