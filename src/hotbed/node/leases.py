"""Leases: what a client makes lives as long as the client does.

A lease is held by one open connection. When that connection ends, for whatever reason, everything made under the
lease is ended with it: a trainer that is killed leaves nothing. A holder that is far away may ask for patience: then
its lease outlives a broken connection for a while, in which it can be held again over another. The registry also knows
how long nobody has held one, which is how an embedded node notices that it is no longer needed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from hotbed.errors import LeaseGone, SandboxGone

if TYPE_CHECKING:
    from hotbed.node.scheduler import Share
    from hotbed.node.tenants import Tenant

log = logging.getLogger(__name__)


class Member(Protocol):
    """Something that a lease keeps alive."""

    def discard(self, reason: str) -> None:
        """Start ending it. Returns at once; idempotent."""
        ...


class Lease:
    """One client's hold on what it made, and whose client that is. A tenant's lasting lease is held by nobody."""

    __slots__ = ("id", "held", "holder", "tenant", "timer", "_members", "_over")

    def __init__(self, *, tenant: Tenant | None = None, held: bool = True) -> None:
        self.id = secrets.token_hex(12)
        self.tenant = tenant
        self.held = held
        self.holder = 0  # the connection that holds it, counted
        self.timer: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()
        self._members: set[Member] = set()

    def __len__(self) -> int:
        return len(self._members)

    def check(self) -> None:
        """Raise `SandboxGone` when it has ended."""
        if self._over.is_set():
            raise SandboxGone("the lease ended while the sandbox was being made", hint="the client is gone")

    def join(self, member: Member) -> None:
        """Put something under this lease. Raises `SandboxGone` when the lease has just ended."""
        self.check()
        self._members.add(member)

    def leave(self, member: Member) -> None:
        """It has ended on its own."""
        self._members.discard(member)

    async def wait_over(self, timeout_s: float) -> bool:
        """Wait until it has ended, for so long at most; whether it has."""
        try:
            await asyncio.wait_for(self._over.wait(), timeout_s)
        except asyncio.TimeoutError:
            return False
        return True

    def end(self) -> None:
        """End everything under it."""
        self._over.set()
        for member in tuple(self._members):
            member.discard("lease_ended")


class Leases:
    """The leases held right now."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._leases.values())

    def open(self, tenant: Tenant | None = None) -> Lease:
        """A new lease, to be ended by whoever holds the connection."""
        lease = Lease(tenant=tenant)
        self._leases[lease.id] = lease
        self._changed.set()
        log.info("event=lease_opened lease=%s leases=%d", lease.id, len(self))
        return lease

    def get(self, lease_id: str | None) -> Lease | None:
        """The lease that a request names; None when it names none. Raises `SandboxGone` for one that has ended."""
        if lease_id is None:
            return None
        lease = self._leases.get(lease_id)
        if lease is None:
            raise LeaseGone("that lease is not held here", hint="its connection ended, or the node restarted")
        return lease

    def hold(self, lease: Lease) -> int:
        """Let another connection hold it, which is told its number."""
        if lease.timer is not None:
            lease.timer.cancel()
            lease.timer = None
        lease.holder += 1
        return lease.holder

    def let_go(self, lease: Lease, holder: int, *, patience_s: float) -> None:
        """A connection that held it is gone: end it, unless another holds it, or does so in this time."""
        if holder != lease.holder or lease.id not in self._leases:
            return
        if not patience_s:
            return self.end(lease)
        lease.timer = asyncio.get_running_loop().call_later(patience_s, self.end, lease)
        log.info("event=lease_let_go lease=%s patience_s=%g", lease.id, patience_s)

    def end(self, lease: Lease) -> None:
        """Nobody holds it: end everything made under it. Idempotent."""
        if self._leases.pop(lease.id, None) is None:
            return
        if lease.timer is not None:
            lease.timer.cancel()
        log.info("event=lease_ended lease=%s sandboxes=%d leases=%d", lease.id, len(lease), len(self))
        lease.end()
        self._changed.set()

    async def wait_unused(self, *, linger_s: float, first_s: float) -> None:
        """Wait until no lease has been held for `linger_s`; before the very first lease, for `first_s`."""
        patience = first_s
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), None if self._leases else patience)
            except asyncio.TimeoutError:
                return
            patience = linger_s


def tenant_id(lease: Lease | None) -> str:
    """The tenant of what lives under a lease; nothing for what is the node's own user's."""
    return lease.tenant.id if lease is not None and lease.tenant is not None else ""


def claim_of(lease: Lease | None) -> tuple[str, Share | None]:
    """In whose name a turn is taken, and the share of it: the tenant's, or the lease's own without one."""
    if lease is None:
        return "", None
    return (lease.id, None) if lease.tenant is None else (lease.tenant.id, lease.tenant.share)


def lasting(lease: Lease | None) -> Lease | None:
    """What to make under, on behalf of a lease's tenant, what must outlive the lease."""
    return lease.tenant.lease if lease is not None and lease.tenant is not None else None
