"""A live sandbox and what it occupies: its turn in admission and its place under a lease.

Both are given back when nothing of the sandbox is left, and not before: a sandbox that is being torn down still takes
memory and processes, so it still counts. Teardown runs in the background and cannot be interrupted; who wants to know
waits for it, and who does not still finds that it was killed: the kernel takes longer to clear up than to kill.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from hotbed.errors import Error
from hotbed.node.leases import Lease, tenant_id
from hotbed.node.meter import Meter
from hotbed.node.nursery import Nursery
from hotbed.node.scheduler import Turn
from hotbed.runtime.base import Box

log = logging.getLogger(__name__)


class HeldBox:
    """A box until it is gone. It is in `live` for as long."""

    __slots__ = ("box", "lease", "on_end", "template", "_ending", "_live", "_meter", "_metered_s", "_nursery", "_turn")

    def __init__(
        self,
        box: Box,
        *,
        turn: Turn,
        lease: Lease | None,
        nursery: Nursery,
        live: set[HeldBox],
        meter: Meter,
        template: str = "",
    ) -> None:
        self.box = box
        self.lease = lease
        self.template = template
        self.on_end: Callable[[str], None] | None = None
        self._turn = turn
        self._live = live
        live.add(self)
        self._nursery = nursery
        self._meter = meter
        self._metered_s = time.monotonic()
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_ending(self) -> bool:
        """Whether its end has begun."""
        return self._ending is not None

    def metered(self) -> None:
        """Put the time since this was last asked on its tenant's account."""
        before, self._metered_s = self._metered_s, time.monotonic()
        self._meter.of(tenant_id(self.lease)).sandbox_s += self._metered_s - before

    def discard(self, reason: str) -> None:
        """Start ending it. Returns at once; idempotent."""
        if self._ending is None:
            self._turn.leave()
            self._ending = self._nursery.start(self._end(), name=f"end-{self.box.id}")
            on_end, self.on_end = self.on_end, None  # its session holds this: both are freed without a collection
            if on_end is not None:
                on_end(reason)

    async def kill(self, reason: str) -> None:
        """Start ending it, and wait until its kill is on its way to who does it. Idempotent."""
        self.discard(reason)
        await asyncio.sleep(0)  # the first step of the task that ends it

    async def end(self, reason: str) -> None:
        """End it and wait until nothing is left. Idempotent."""
        self.discard(reason)
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            await self.box.kill()
        except Error as error:
            log.error("event=kill_failed box=%d code=%s message=%r", self.box.id, error.code, error.message)
        finally:
            self.metered()
            self._meter.of(tenant_id(self.lease)).cpu_s += self.box.cpu_s()
            self._turn.release()
            self._live.discard(self)
            if self.lease is not None:
                self.lease.leave(self)
