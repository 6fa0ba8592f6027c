"""Which descriptor wakes the supervisor for what.

All are in one epoll but the *near* one, which is waited for beside that epoll. A process that stops wakes whoever waits
for its listener on the CPU that it leaves, and that is half of what a stop costs; but an epoll in between passes the
wake-up on without saying where. Near is the listener that was alone in waking us last: where many rollouts stop at
once, nobody is alone for long, and it does not matter.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Protocol

OnEvents = Callable[[int], object]


class Watching(Protocol):
    """Watch a descriptor, and let go of it."""

    def watch(self, fd: int, call: OnEvents, events: int = select.EPOLLIN) -> None:
        """Call with the events whenever there are any."""
        ...

    def release(self, fd: int) -> None:
        """Stop watching, if it is watched, and close."""
        ...


class Watcher:
    """One epoll, and the near descriptor.

    A descriptor is closed only at the end of the round that released it: its number must not come to mean something
    else while the round still holds events for it.
    """

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._all = self._poll.fileno()
        self._beside = select.poll()
        self._beside.register(self._all, select.POLLIN)
        self.near = -1
        self._listeners: set[int] = set()
        self._calls: dict[int, OnEvents] = {}
        self._released: list[int] = []

    def watch(self, fd: int, call: OnEvents, events: int = select.EPOLLIN) -> None:
        """Call with the events whenever there are any."""
        self._calls[fd] = call
        self._poll.register(fd, events)

    def watch_listener(self, fd: int, call: OnEvents) -> None:
        """The same for a listener, whose calls should be answered at once."""
        self.watch(fd, call)
        self._listeners.add(fd)

    def forget(self, fd: int) -> None:
        """Stop watching, and leave it open. Idempotent."""
        if self._calls.pop(fd, None) is None:
            return
        self._listeners.discard(fd)
        if fd == self.near:
            self._beside.unregister(fd)
            self.near = -1
        else:
            self._poll.unregister(fd)

    def release(self, fd: int) -> None:
        """Stop watching, if it is watched, and close."""
        self.forget(fd)
        self._released.append(fd)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for events and make the calls they ask for."""
        for fd, events in self._beside.poll(None if timeout_s is None else timeout_s * 1000):
            if fd == self._all:
                self._serve_all()
            else:
                self._tell(fd, events)
        while self._released:
            os.close(self._released.pop())

    def _serve_all(self) -> None:
        happened = self._poll.poll(0)
        for fd, events in happened:
            self._tell(fd, events)
        if len(happened) == 1 and happened[0][0] in self._listeners:
            self._come_near(happened[0][0])

    def _tell(self, fd: int, events: int) -> None:
        call = self._calls.get(fd)
        if call is not None:
            call(events)

    def _come_near(self, fd: int) -> None:
        if self.near >= 0:
            self._beside.unregister(self.near)
            self._poll.register(self.near, select.EPOLLIN)
        self._poll.unregister(fd)
        self._beside.register(fd, select.POLLIN)
        self.near = fd

    def watched(self) -> int:
        """How many descriptors are watched."""
        return len(self._calls)

    def close(self) -> None:
        """Close everything that is still watched."""
        for fd in list(self._calls):
            self.release(fd)
        while self._released:
            os.close(self._released.pop())
        self._poll.close()
