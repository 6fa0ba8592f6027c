"""Births give way to programs that have just begun, so that what has begun is finished first.

With 128 clients that each make a sandbox, run something and delete it, most of what is alive waits for a processor.
Each birth that is let in before a program has ended makes all of these later, and keeps more memory moving through
the caches. So while many are *busy*, being born or running for less than `YOUNG_S`, a birth waits until one of them is
done, in fair turns between tenants (`scheduler.next_tenant`). Programs never wait.

Nor does a birth for which there is a processor. What runs for longer is not counted, however much of it there is; and
every `TICK_S` one birth for each core is let in if the kernel counts no more threads that want one than there are:
then what is busy sleeps.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

from hotbed.node.scheduler import next_tenant

BUSY_PER_CORE = 8
YOUNG_S = 0.1
TICK_S = 0.005

_Entry = tuple[int, "Busy", "asyncio.Future[None]"]  # when it arrived, what waits, and what tells it to go on


class Busy:
    """A birth, or a program's first moments: a context that has ended when the one or the other has."""

    __slots__ = ("_pace", "tenant")

    def __init__(self, pace: Pace, tenant: str) -> None:
        self._pace = pace
        self.tenant = tenant

    async def begin(self) -> None:
        """Begin when there is room."""
        await self._pace.admit(self)

    def __enter__(self) -> Busy:
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.end(self)


class Pace:
    """Says when a birth may begin."""

    def __init__(self, *, cores: int, runnable: Callable[[], int]) -> None:
        """`runnable` tells how many threads run or could if there were a processor, whoever asks included."""
        self._cores = cores
        self._runnable = runnable
        self._since_s: dict[Busy, float] = {}  # of all that are busy, the oldest first
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Entry]] = {}
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None

    def birth(self, tenant: str) -> Busy:
        """One that has yet to `begin`."""
        return Busy(self, tenant)

    def program(self, tenant: str) -> Busy:
        """One that has begun."""
        busy = Busy(self, tenant)
        self._add(busy)
        return busy

    async def admit(self, busy: Busy) -> None:
        """Wait until a birth may begin."""
        if not self._waiting and self._has_room():
            self._add(busy)
            return
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        self._waiting.setdefault(busy.tenant, deque()).append((self._arrivals, busy, told))
        self._await_tick()
        await told

    def end(self, busy: Busy) -> None:
        """It is done. Idempotent."""
        if self._remove(busy):
            self._let_in()

    def _add(self, busy: Busy) -> None:
        self._since_s[busy] = time.monotonic()
        self._held[busy.tenant] += 1

    def _remove(self, busy: Busy) -> bool:
        if self._since_s.pop(busy, None) is None:
            return False
        self._held[busy.tenant] -= 1
        if not self._held[busy.tenant]:
            del self._held[busy.tenant]
        return True

    def _has_room(self) -> bool:
        grown_s = time.monotonic() - YOUNG_S
        while self._since_s:
            oldest = next(iter(self._since_s))
            if self._since_s[oldest] > grown_s:
                break
            self._remove(oldest)
        return len(self._since_s) < BUSY_PER_CORE * self._cores

    def _let_in(self) -> None:
        while self._waiting and self._has_room():
            self._let_next_in()

    def _let_next_in(self) -> None:
        heads = {tenant: waiters[0][0] for tenant, waiters in self._waiting.items()}
        tenant = next_tenant(heads, self._held)
        _, busy, told = self._waiting[tenant].popleft()
        if not self._waiting[tenant]:
            del self._waiting[tenant]
        if not told.done():  # else it was cancelled
            self._add(busy)
            told.set_result(None)

    def _await_tick(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._let_in()
        if self._waiting and self._runnable() <= self._cores:
            for _ in range(self._cores):
                if self._waiting:
                    self._let_next_in()
        self._await_tick()
