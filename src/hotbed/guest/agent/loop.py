"""A small event loop: descriptors and deadlines, one thread, epoll."""

from __future__ import annotations

import heapq
import select
import time
from typing import Callable, Dict, List, Optional

IN, OUT, HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP


class Timer:
    """A call due at a moment of the monotonic clock, until it is cancelled."""

    __slots__ = ("call", "when_ns")

    def __init__(self, when_ns: int, call: Callable[[], None]) -> None:
        self.when_ns = when_ns
        self.call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        """Never make the call. Idempotent."""
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return self.when_ns < other.when_ns


class Loop:
    """Calls back what is ready, in the order in which the kernel found it ready."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._calls: Dict[int, Callable[[], None]] = {}
        self._timers: List[Timer] = []

    def watch(self, fd: int, call: Callable[[], None], events: int = IN) -> None:
        """Call whenever `fd` is ready (level-triggered; errors and hang-ups count as ready)."""
        self._epoll.register(fd, events)
        self._calls[fd] = call

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; before it is closed."""
        if self._calls.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def at(self, when_ns: int, call: Callable[[], None]) -> Timer:
        """Call once at a moment of the monotonic clock."""
        timer = Timer(when_ns, call)
        heapq.heappush(self._timers, timer)
        return timer

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call once, `seconds` from now."""
        return self.at(time.monotonic_ns() + int(seconds * 1e9), call)

    def turn(self) -> None:
        """Wait for something to be ready or due, and make its calls."""
        for fd, _ in self._epoll.poll(self._patience()):
            call = self._calls.get(fd)
            if call is not None:  # an earlier call of this turn may have forgotten it
                call()
        self._run_due()

    def close(self) -> None:
        """Give the epoll descriptor back."""
        self._epoll.close()

    def _patience(self) -> Optional[float]:
        while self._timers and self._timers[0].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, (self._timers[0].when_ns - time.monotonic_ns()) / 1e9)

    def _run_due(self) -> None:
        while self._timers and (self._timers[0].call is None or self._timers[0].when_ns <= time.monotonic_ns()):
            call = heapq.heappop(self._timers).call
            if call is not None:
                call()
