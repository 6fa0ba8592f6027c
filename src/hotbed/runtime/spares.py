"""Sandboxes forked ahead of the request: born, isolated, waiting.

Each template keeps a few with its default limits. A request takes one without waiting for anything; the stock is filled
again in one batch, once the event loop has had a moment without requests, so that filling does not compete with them.
Parking costs more CPU than it saves (a spare rehearses before it waits), so none is parked while as many forks are
being waited for as there are CPUs: measured with 8 clients on two, a rollout took 13.0 ms of CPU with parking and 9.8
without. Nor is any while the machine is short of memory. How many are worth keeping otherwise, `demand` says.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable

from hotbed.errors import Error
from hotbed.runtime.demand import Demand
from hotbed.runtime.linux.pressure import memory_is_short
from hotbed.runtime.sandboxes import ForkBox

_QUIET_S = 0.002
_RETRY_S = 1.0
_BIRTH_S = 0.1  # what takes longer is the program, not its fork


class Spares:
    """The stock of one template. `make` forks one more; some are for few, and made `from_first_use` on."""

    def __init__(self, size: int, make: Callable[[], Awaitable[ForkBox]], *, from_first_use: bool = False) -> None:
        self.size = size
        self._wakes = not from_first_use
        self.demand = Demand(size, time.monotonic())
        self.short = False
        self._make = make
        self._stock: deque[ForkBox] = deque()
        self._making = 0
        self._awaited: set[asyncio.Future[None]] = set()
        self._enough = len(os.sched_getaffinity(0))
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._stock)

    def take(self) -> ForkBox | None:
        """One that has been born, if there is one; and have the stock filled soon."""
        self.demand.used(time.monotonic())
        self._wakes = True
        self.refill_soon()
        for _ in range(len(self._stock)):
            box = self._stock.popleft()
            if box.is_born():
                return box
            if box.is_alive():
                self._stock.append(box)
        return None

    def refill_soon(self, delay_s: float = _QUIET_S) -> None:
        """Fill after a quiet moment: each request puts it off."""
        if self._closed or self.size == 0 or not self._wakes:
            return
        if self._timer is not None:
            self._timer.cancel()
        if len(self._stock) + self._making <= self.size // 4:
            delay_s = 0.0
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._refill)

    def wait_for(self, birth: asyncio.Future[None]) -> None:
        """Somebody waits for this fork now: with enough of them, parking waits too."""
        self._awaited.add(birth)
        asyncio.get_running_loop().call_later(_BIRTH_S, self._no_longer, birth)
        birth.add_done_callback(self._no_longer)

    def _no_longer(self, birth: asyncio.Future[None]) -> None:
        if birth in self._awaited:
            self._awaited.discard(birth)
            self.refill_soon()

    def _refill(self) -> None:
        self._timer = None
        if len(self._awaited) >= self._enough:
            return
        missing = self._wanted() - len(self._stock) - self._making
        for _ in range(missing):
            self._making += 1
            task = asyncio.ensure_future(self._make_one())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _wanted(self) -> int:
        return 0 if self.short else self.demand.wanted(time.monotonic())

    async def tend(self) -> None:
        """Now and then: let go of those that are too many, or of all when memory is short; make what is missing."""
        self.short = memory_is_short()
        while len(self._stock) > self._wanted():
            await self._stock.pop().kill()
        self.refill_soon()

    async def _make_one(self) -> None:
        try:
            box = await self._make()
            self._stock.append(box)
        except (Error, OSError):  # of the template, or of the host, which may be short of descriptors
            self.refill_soon(_RETRY_S)
            return
        finally:
            self._making -= 1
        if self._closed:
            await box.kill()

    async def wait_parked(self) -> None:
        """Wait until the stock is full and born."""
        self._refill()
        while self._making:
            await asyncio.gather(*self._tasks)
        await asyncio.gather(*(box.ready() for box in tuple(self._stock)))

    async def close(self) -> None:
        """End them all. Idempotent."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*tuple(self._tasks), return_exceptions=True)
        stock, self._stock = self._stock, deque()
        await asyncio.gather(*(box.kill() for box in stock), return_exceptions=True)
