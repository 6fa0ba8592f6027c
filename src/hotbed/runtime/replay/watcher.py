"""Which descriptor wakes the supervisor for what."""

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
    """One epoll.

    A descriptor is closed only at the end of the round that released it: its number must not come to mean something
    else while the round still holds events for it.
    """

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._calls: dict[int, OnEvents] = {}
        self._released: list[int] = []

    def watch(self, fd: int, call: OnEvents, events: int = select.EPOLLIN) -> None:
        """Call with the events whenever there are any."""
        self._calls[fd] = call
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching, and leave it open. Idempotent."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def release(self, fd: int) -> None:
        """Stop watching, if it is watched, and close."""
        self.forget(fd)
        self._released.append(fd)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for events and make the calls they ask for."""
        for fd, events in self._poll.poll(timeout_s):
            call = self._calls.get(fd)
            if call is not None:
                call(events)
        while self._released:
            os.close(self._released.pop())

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
