"""A virtual clock: every reading adds one step, and a wait that ran its full length adds that length.

Waits are real: a program that sleeps a second for another process to get ready finds it ready. What is virtual is what
the clock says afterwards. The rule must not depend on how long things took, except where that is decided anyway:

- A *sleep* ends only when its time is over. From then on, whoever reads the clock finds it moved to the sleep's end.
- A *timed wait* (poll, epoll, select, a futex with a timeout) ends by an event or by its time. When the same thread
  calls next, the time is over or it is not; if it is, the clock moves to the wait's end; if not, an event came, and it
  does not.

Deadlines that a program computed from this clock and hands to the kernel are in a time that the kernel does not know.
They are rewritten, in the program's memory, to the kernel's; and back, when the thread calls next.

CAVEAT: all processes of a rollout share one clock (a shell's `date; sleep 1; date` needs it), so readings that run at
the same time race for the steps.
"""

from __future__ import annotations

import heapq
import time

MONOTONIC_START_NS = 1000 * 10**9
_WALL = frozenset({0, 5, 8, 11})  # REALTIME, REALTIME_COARSE, REALTIME_ALARM, TAI
_UPTIME = frozenset({1, 4, 6, 7, 9})  # MONOTONIC, its RAW and COARSE, BOOTTIME and its ALARM
_CPU = frozenset({2, 3})  # PROCESS_CPUTIME_ID, THREAD_CPUTIME_ID


class Clock:
    """One rollout's time. Nanoseconds throughout; `real` is this process's monotonic clock."""

    def __init__(self, epoch_ns: int, step_ns: int) -> None:
        self._epoch = epoch_ns
        self._step = step_ns
        self._elapsed = 0
        self._sleeps: list[tuple[int, int, int]] = []  # (real end, virtual end, thread)
        self._waits: dict[int, tuple[int, int]] = {}  # thread: (real end, virtual end)

    def read(self, thread: int, clock_id: int) -> int | None:
        """One reading; None if there is no such clock."""
        offset = self.offset(clock_id)
        if offset is None:
            return None
        self.settle(thread)
        self._elapsed += self._step
        return offset + self._elapsed

    def remaining(self, clock_id: int, deadline: int) -> int | None:
        """How long until a deadline on a virtual clock; None if there is no such clock. Not a reading."""
        offset = self.offset(clock_id)
        return None if offset is None else max(0, deadline - offset - self._elapsed)

    def offset(self, clock_id: int) -> int | None:
        """What a clock shows when nothing has elapsed. Negative ids are processes' and threads' CPU clocks."""
        if clock_id in _WALL:
            return self._epoch
        if clock_id in _UPTIME:
            return MONOTONIC_START_NS
        return 0 if clock_id in _CPU or clock_id < 0 else None

    def sleep(self, thread: int, duration: int) -> None:
        """A thread goes to sleep."""
        self.settle(thread)
        heapq.heappush(self._sleeps, (time.monotonic_ns() + duration, self._elapsed + duration, thread))

    def wait(self, thread: int, duration: int) -> None:
        """A thread waits for an event, for no longer than this."""
        self.settle(thread)
        self._waits[thread] = (time.monotonic_ns() + duration, self._elapsed + duration)

    def settle(self, thread: int) -> None:
        """Account for what is over by now, knowing that this thread is awake."""
        if not self._sleeps and not self._waits:
            return
        now = time.monotonic_ns()
        wait = self._waits.pop(thread, None)
        if wait is not None and wait[0] <= now:
            self._elapsed = max(self._elapsed, wait[1])
        own = [item for item in self._sleeps if item[2] == thread]
        for item in own:  # a signal may have ended it early; that is rare enough to be called its full length
            self._sleeps.remove(item)
            self._elapsed = max(self._elapsed, item[1])
        if own:
            heapq.heapify(self._sleeps)
        while self._sleeps and self._sleeps[0][0] <= now:
            self._elapsed = max(self._elapsed, heapq.heappop(self._sleeps)[1])
