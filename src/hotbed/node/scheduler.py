"""Admission: a sandbox needs a turn before it is forked, and holds it until nothing of it is left.

There are `limit` turns. Who finds none free waits in a queue of bounded length; who finds the queue full is refused at
once with `AtCapacity` and a time to come back, before anything has been done. A turn that is given back goes to the
tenant that holds fewest, then to whoever of it has waited longest, so that a burst of one tenant delays its own work
and not the others'.

The policy is the pure function `next_tenant`; `Admission` carries it out. A tenant is whatever the caller says: the
lease of an embedded client, the key of a remote one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from hotbed.errors import AtCapacity

RETRY_AFTER_S = 1.0


class Turn:
    """The right to one sandbox. `release` is idempotent."""

    __slots__ = ("_admission", "_tenant")

    def __init__(self, admission: Admission, tenant: str) -> None:
        self._admission: Admission | None = admission
        self._tenant = tenant

    def release(self) -> None:
        """Give it back, now that nothing of the sandbox is left."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._released(self._tenant)


def next_tenant(heads: Mapping[str, int], held: Mapping[str, int]) -> str:
    """Whose turn it is: the tenant that holds fewest, then the one whose first waiter arrived earliest."""
    return min(heads, key=lambda tenant: (held.get(tenant, 0), heads[tenant]))


class Admission:
    """Hands out turns."""

    def __init__(self, *, limit: int, queue_limit: int, wait_s: float) -> None:
        self.limit = limit
        self.running = 0
        self.queued = 0
        self.refused = 0
        self._queue_limit = queue_limit
        self._wait_s = wait_s
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        self._arrivals = 0

    async def acquire(self, tenant: str) -> Turn:
        """A turn, after at most `wait_s` in the queue. Raises `AtCapacity`."""
        if self.running < self.limit and not self.queued:
            self._granted(tenant)
            return Turn(self, tenant)
        if self.queued >= self._queue_limit:
            raise self._refusal(f"all {self.limit} sandboxes are taken and {self.queued} requests wait")
        await self._wait(tenant)
        return Turn(self, tenant)

    async def _wait(self, tenant: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        entry = (self._arrivals, granted)
        self._waiting.setdefault(tenant, deque()).append(entry)
        self.queued += 1
        try:
            await asyncio.wait_for(asyncio.shield(granted), self._wait_s)
        except asyncio.TimeoutError:
            if not granted.done():
                raise self._refusal(f"no turn came up in {self._wait_s:g} s") from None
        except asyncio.CancelledError:
            if granted.done():
                self._released(tenant)
            raise
        finally:
            if not granted.done():
                granted.cancel()
                self._forget(tenant, entry)

    def _forget(self, tenant: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        self.queued -= 1
        waiters = self._waiting[tenant]
        waiters.remove(entry)
        if not waiters:
            del self._waiting[tenant]

    def _granted(self, tenant: str) -> None:
        self.running += 1
        self._held[tenant] = self._held.get(tenant, 0) + 1

    def _released(self, tenant: str) -> None:
        self.running -= 1
        left = self._held[tenant] - 1
        if left:
            self._held[tenant] = left
        else:
            del self._held[tenant]
        while self._waiting and self.running < self.limit:
            self._grant_next()

    def _grant_next(self) -> None:
        heads = {tenant: waiters[0][0] for tenant, waiters in self._waiting.items()}
        tenant = next_tenant(heads, self._held)
        entry = self._waiting[tenant][0]
        self._forget(tenant, entry)
        self._granted(tenant)
        entry[1].set_result(None)

    def _refusal(self, what: str) -> AtCapacity:
        self.refused += 1
        hint = "retry after the time named, close sandboxes you no longer need, or start the node with more"
        return AtCapacity(what, hint=hint, retry_after_s=RETRY_AFTER_S)
