"""Admission: a sandbox needs a turn before it is forked, and holds it until nothing of it is left.

There are `limit` turns. Who finds none free waits in a queue of bounded length; who finds the queue full is refused at
once with `AtCapacity` and a time to come back, before anything has been done. A turn that is given back goes to the
tenant that holds fewest, then to whoever of it has waited longest, so that a burst of one tenant delays its own work
and not the others'.

A tenant may have a share: how many turns it may hold and how many of its requests may wait. At its share, what can
wait does, passed over until something of the tenant's own has ended; what cannot is refused with `QuotaExceeded`,
unless one of its sandboxes is on its way out: that turn is about to come back, and is waited for.

The policy is the pure function `next_tenant`; `Admission` carries it out. A tenant is whatever the caller says: the
lease of an embedded client, the key of a remote one.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from hotbed.errors import AtCapacity, QuotaExceeded

RETRY_AFTER_S = 1.0

_Entry = tuple[int, "asyncio.Future[None]"]  # when it arrived, and what tells it that its turn has come


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one tenant may hold of the turns, and of the queue. `name` is for people."""

    name: str
    limit: int
    waiting: int


class Turn:
    """The right to one sandbox. `leave` and `release` are idempotent."""

    __slots__ = ("_admission", "_leaving", "_tenant")

    def __init__(self, admission: Admission, tenant: str) -> None:
        self._admission: Admission | None = admission
        self._tenant = tenant
        self._leaving = False

    def leave(self) -> None:
        """Say that it will be given back soon: its sandbox has been told to end."""
        if self._admission is not None and not self._leaving:
            self._leaving = True
            self._admission._leaving[self._tenant] += 1

    def release(self) -> None:
        """Give it back, now that nothing of the sandbox is left."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._leaving[self._tenant] -= self._leaving
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
        self._leaving: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Entry]] = {}
        self._shares: dict[str, Share] = {}
        self._arrivals = 0

    async def acquire(self, tenant: str, *, share: Share | None = None, patient: bool = True) -> Turn:
        """A turn, after at most `wait_s` in the queue. Raises `AtCapacity`, and beyond a share `QuotaExceeded`."""
        if share is not None:
            self._check_share(tenant, share, patient=patient)
        if self.running < self.limit and not self.queued and self._has_room(tenant):
            self._granted(tenant)
            return Turn(self, tenant)
        if share is None and self.queued >= self._queue_limit:
            raise self._refusal(f"all {self.limit} sandboxes are taken and {self.queued} requests wait")
        await self._wait(tenant)
        return Turn(self, tenant)

    def check_room(self, tenant: str, count: int, *, share: Share | None = None) -> None:
        """Raise unless so many turns at once could be had now, before the first of them is taken."""
        left = share.limit - self.kept(tenant) - self.waiting(tenant) if share is not None else count
        if count > left:
            assert share is not None
            self.refused += 1
            hint = "delete what you no longer need, or ask the operator of this server for another tier"
            raise QuotaExceeded(f"{share.name} at once, and {max(0, left)} are left, not {count}", hint=hint)
        if count > self.limit - self.running + self._leaving.total() - self.queued:
            raise self._refusal(f"{self.running} of {self.limit} sandboxes are taken, and {count} were asked for")

    def held(self, tenant: str) -> int:
        """How many turns a tenant holds."""
        return self._held.get(tenant, 0)

    def kept(self, tenant: str) -> int:
        """How many of them are not about to come back."""
        return self.held(tenant) - self._leaving[tenant]

    def waiting(self, tenant: str) -> int:
        """How many requests of a tenant wait."""
        return len(self._waiting.get(tenant, ()))

    def _check_share(self, tenant: str, share: Share, *, patient: bool) -> None:
        self._shares[tenant] = share
        waiting = self.waiting(tenant)
        if not patient and self.kept(tenant) + waiting >= share.limit:
            self.refused += 1
            hint = "delete what you no longer need, or ask the operator of this server for another tier"
            raise QuotaExceeded(f"{share.name} at once, and all of them are in use", hint=hint, retry_after_s=1.0)
        if waiting and waiting >= share.waiting:
            raise self._refusal(f"{share.name} at once, and {waiting} requests wait already")

    def _has_room(self, tenant: str) -> bool:
        share = self._shares.get(tenant)
        return share is None or self._held.get(tenant, 0) < share.limit

    async def _wait(self, tenant: str) -> None:
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[None] = loop.create_future()
        self._arrivals += 1
        entry = (self._arrivals, granted)
        self._waiting.setdefault(tenant, deque()).append(entry)
        self.queued += 1
        timer = loop.call_later(self._wait_s, self._expire, tenant, entry)
        self._grant_waiting()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                self._forget(tenant, entry)
            elif granted.exception() is None:
                self._released(tenant)  # its turn came in the instant it was cancelled
            raise
        finally:
            timer.cancel()

    def _expire(self, tenant: str, entry: _Entry) -> None:
        self._forget(tenant, entry)
        if not entry[1].done():
            entry[1].set_exception(self._refusal(f"no turn came up in {self._wait_s:g} s"))

    def _forget(self, tenant: str, entry: _Entry) -> None:
        waiters = self._waiting.get(tenant, ())
        if entry not in waiters:
            return
        self.queued -= 1
        self._waiting[tenant].remove(entry)
        if not self._waiting[tenant]:
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
            del self._leaving[tenant]
        self._grant_waiting()

    def _grant_waiting(self) -> None:
        while self._waiting and self.running < self.limit and self._grant_next():
            pass

    def _grant_next(self) -> bool:
        """Give a turn to whose turn it is; False when all who wait are at their shares."""
        heads = {tenant: waiters[0][0] for tenant, waiters in self._waiting.items() if self._has_room(tenant)}
        if not heads:
            return False
        tenant = next_tenant(heads, self._held)
        entry = self._waiting[tenant][0]
        self._forget(tenant, entry)
        if not entry[1].done():  # else it was cancelled and has not run since
            self._granted(tenant)
            entry[1].set_result(None)
        return True

    def _refusal(self, what: str) -> AtCapacity:
        self.refused += 1
        hint = "retry after the time named, close sandboxes you no longer need, or start the node with more"
        return AtCapacity(what, hint=hint, retry_after_s=RETRY_AFTER_S)
