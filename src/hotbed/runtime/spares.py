"""Sandboxes forked ahead of the request: born, isolated, waiting.

A request takes one without waiting for anything. The stock is filled again when what was taken has ended, or has run
for a while, and no request has come meanwhile; one after the other and in turn with those of other templates (`lot`).
So it does not compete with what runs, unless the stock is low. Parking costs more CPU than it saves (a spare rehearses
before it waits), so none is parked while as many forks are being waited for as there are CPUs: measured with 8 clients
on two, a rollout took 13.0 ms of CPU with parking and 9.8 without. How many are worth keeping, `demand` says, and the
lot how many of them there is room for.

Those of a template that nobody asked for in a quarter of an hour are frozen, where the node can freeze: they keep their
place and are thawed by the next request. After an hour nobody wants any, and they end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import chain
from typing import Protocol

from hotbed.errors import Error
from hotbed.runtime.demand import COLD_S, Demand
from hotbed.runtime.lot import Lot
from hotbed.runtime.sandboxes import ForkBox

log = logging.getLogger(__name__)

_QUIET_S = 0.03  # by when most of what was taken is over
_OVER_S = 0.001
_RETRY_S = 1.0
_BIRTH_S = 0.1  # what takes longer is the program, not its fork
COST_MIB = 8


class Freezing(Protocol):
    """Holds a sandbox still, and lets it go on."""

    async def begin(self, box: ForkBox) -> object:
        """Hold it still."""
        ...

    async def end(self, box: ForkBox) -> None:
        """Let it go on."""
        ...

    async def reclaim(self, box: ForkBox) -> int | None:
        """Give back what memory of it the kernel can take."""
        ...


class Spares:
    """The stock of one template. `make` forks one more; some are for few, and made `from_first_use` on."""

    def __init__(
        self,
        size: int,
        make: Callable[[], Awaitable[ForkBox]],
        *,
        lot: Lot | None = None,
        cost_mib: int = COST_MIB,
        from_first_use: bool = False,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.size = size
        self.cost_mib = cost_mib
        self.clock = clock
        self._wakes = not from_first_use
        self.demand = Demand(size, clock(), **({} if most is None else {"most": most}))
        self.freezing: Callable[[], Freezing] | None = None
        self._lot = lot or Lot()
        self._lot.join(self)
        self._make = make
        self._stock: deque[ForkBox] = deque()
        self._frozen: list[ForkBox] = []
        self._making = 0
        self._awaited: set[asyncio.Future[None]] = set()
        self._enough = len(os.sched_getaffinity(0))
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._filling = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._stock) + len(self._frozen)

    def __iter__(self) -> Iterator[ForkBox]:
        return chain(self._stock, self._frozen)

    @property
    def frozen(self) -> int:
        """How many of them are held still."""
        return len(self._frozen)

    def take(self) -> ForkBox | None:
        """One that has been born, if there is one; and have the stock filled soon."""
        self.demand.used(self.clock())
        self._wakes = True
        self.refill_soon()
        for _ in range(len(self._stock)):
            box = self._stock.popleft()
            if box.is_born():
                box.when_gone(self._when_over)
                return box
            if box.is_alive():
                self._stock.append(box)
        return None

    def _lose(self, box: ForkBox, _: str) -> None:
        """One has ended. If it was parked yet, it is nothing that is kept."""
        for stock in (self._stock, self._frozen):
            if box in stock:
                stock.remove(box)
                self.refill_soon()

    def _when_over(self, _: str) -> None:
        self.refill_soon(_OVER_S)

    def refill_soon(self, delay_s: float = _QUIET_S) -> None:
        """Fill after a quiet moment: each request puts it off."""
        if self._closed or self.size == 0 or not self._wakes:
            return
        self._filling = False
        if self._timer is not None:
            self._timer.cancel()
        if delay_s == _QUIET_S and len(self._stock) + self._making <= self.size // 4:
            delay_s = 0.0
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._refill)

    def wait_for(self, birth: asyncio.Future[None]) -> None:
        """Somebody waits for this fork now: with enough of them, parking waits too."""
        if not self._wakes:
            return
        self._awaited.add(birth)
        asyncio.get_running_loop().call_later(_BIRTH_S, self._no_longer, birth)
        birth.add_done_callback(self._no_longer)

    def _no_longer(self, birth: asyncio.Future[None]) -> None:
        if birth in self._awaited:
            self._awaited.discard(birth)
            self.refill_soon()

    def _refill(self) -> None:
        self._timer = None
        self._filling = True
        self._lot.fill()

    def wanted(self) -> int:
        """How many are worth keeping."""
        return 0 if self._closed else self.demand.wanted(self.clock())

    def fills(self) -> bool:
        """Whether to make any now: not before a quiet moment, nor while many forks are waited for."""
        return self._filling and not self._closed and len(self._awaited) < self._enough

    def missing(self, share: int) -> int:
        """How many to make yet, of those that there is room for."""
        missing = share - len(self) - self._making
        self._filling = self._filling and missing > 0
        return missing

    def held(self) -> int:
        """How many there are or are being made."""
        return len(self) + self._making

    def make(self) -> asyncio.Future[None]:
        """Begin to make one."""
        self._making += 1
        task = asyncio.ensure_future(self._make_one())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def tend(self) -> None:
        """Now and then: let go of those that are too many, freeze those of a cold template, make what is missing."""
        share = self._lot.share(self)
        while len(self) > share:
            await (self._frozen or self._stock).pop().kill()
        if self.is_cold() and self.freezing is not None:
            await self._freeze(self.freezing())
        self.refill_soon()

    def tend_soon(self) -> None:
        """The same without waiting for it."""
        task = asyncio.ensure_future(self.tend())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_cold(self) -> bool:
        """Whether nobody asked for one in a while, or said that they would."""
        return self.demand.idle_s(self.clock()) > COLD_S

    async def _freeze(self, freezing: Freezing) -> None:
        while self._stock and self.is_cold() and not self._closed:
            box = self._stock.pop()
            self._frozen.append(box)
            try:
                await freezing.begin(box)
                await freezing.reclaim(box)
            except Error as error:
                log.info("event=spare_not_frozen box=%d message=%r", box.id, error.message)
                if box in self._frozen:
                    self._frozen.remove(box)
                await box.kill()

    async def thaw(self) -> None:
        """Let those that were held still go on: the template is wanted again."""
        while self._frozen and self.freezing is not None:
            box = self._frozen.pop()
            try:
                await self.freezing().end(box)
            except Error:  # it ended meanwhile
                await box.kill()
                continue
            except BaseException:  # who wanted one is cancelled, and nobody else knows of it
                box.home.kill_box(box.id)
                raise
            self._stock.append(box)

    async def _make_one(self) -> None:
        try:
            box = await self._make()
            self._stock.append(box)
            box.when_gone(partial(self._lose, box))
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
        while self.fills() and self.missing(self._lot.share(self)) + self._making > 0:
            await (asyncio.wait(set(self._tasks)) if self._tasks else asyncio.sleep(0.001))  # it is others' turn
        await asyncio.gather(*self._tasks)
        await asyncio.gather(*(box.ready() for box in tuple(self._stock)))

    async def close(self) -> None:
        """End them all, and make no more. Idempotent."""
        self._closed = True
        self._lot.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*tuple(self._tasks), return_exceptions=True)
        await self.let_go()

    @property
    def is_making(self) -> bool:
        """Whether one is being made."""
        return self._making > 0

    async def let_go(self) -> None:
        """End those that are parked."""
        parked = [*self._stock, *self._frozen]
        self._stock.clear()
        self._frozen.clear()
        await asyncio.gather(*(box.kill() for box in parked), return_exceptions=True)
