"""The doors of one sandbox, heard together.

The loop knows one descriptor for all of them. They can be made ahead of a policy: what is dialled then waits in the
kernel, and somebody is told once that there is a *knock*. So a sandbox that never dials never costs a word.

A *witness* is a descriptor for the node. It is readable from the first thing that was dialled on, for good: either that
still waits at a door, or it was said, before anything was taken from one, that something had come. While it is not
readable there is nothing to ask the broker about.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Callable


class Doorway:
    """Until `close`. With `on_knock`, nothing is taken from a door before `open`."""

    def __init__(self, on_knock: Callable[[], None] | None = None) -> None:
        self._on_knock = on_knock
        self._poll = select.epoll()
        self._doors: dict[int, tuple[socket.socket, Callable[[], None]]] = {}
        self._dialled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._untouched = True
        self._resting: set[int] = set()
        self._heard = self._closed = False

    def add(self, door: socket.socket, on_ready: Callable[[], None]) -> None:
        """One more, which is closed with the others."""
        door.setblocking(False)
        self._doors[door.fileno()] = (door, on_ready)
        self._poll.register(door.fileno(), select.EPOLLIN)
        self._hear()

    def open(self) -> None:
        """From now on, tell who is responsible for a door whenever something waits at it. Idempotent."""
        self._on_knock = None
        if self._doors:
            self._hear()

    def rest(self, door: socket.socket) -> None:
        """Hear of this one no more until `wake`: what waits there cannot be taken."""
        if door.fileno() in self._doors and door.fileno() not in self._resting:
            self._poll.unregister(door.fileno())
            self._resting.add(door.fileno())

    def wake(self) -> None:
        """Hear of all again. Idempotent."""
        for fd in self._resting:
            self._poll.register(fd, select.EPOLLIN)
        self._resting.clear()

    def _hear(self) -> None:
        if not self._heard and not self._closed:
            self._heard = True
            asyncio.get_running_loop().add_reader(self._poll.fileno(), self._on_ready)

    def _hear_no_more(self) -> None:
        if self._heard:
            self._heard = False
            asyncio.get_running_loop().remove_reader(self._poll.fileno())

    def witness(self) -> int:
        """A descriptor that is readable once anything was dialled, as long as this is open. The caller closes it."""
        both = select.epoll()
        try:
            both.register(self._poll.fileno(), select.EPOLLIN)
            both.register(self._dialled, select.EPOLLIN)
            return os.dup(both.fileno())
        finally:
            both.close()

    def _on_ready(self) -> None:
        if self._on_knock is not None:
            self._hear_no_more()
            self._on_knock()
            return
        if self._untouched:
            os.eventfd_write(self._dialled, 1)  # before anything is taken: who finds the doors empty finds this
            self._untouched = False
        for fd, _ in self._poll.poll(0):
            if fd in self._doors:
                self._doors[fd][1]()

    def close(self) -> None:
        """Idempotent."""
        if self._closed:
            return
        self._hear_no_more()
        self._closed = True
        self._resting.clear()
        self._poll.close()
        for door, _ in self._doors.values():
            door.close()
        self._doors.clear()
        os.close(self._dialled)
