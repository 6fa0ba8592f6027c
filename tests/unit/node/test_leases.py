"""Leases: what a client makes lives as long as the client does."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import LeaseGone, SandboxGone
from hotbed.node.leases import Leases


class Kept:
    """Something under a lease."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def discard(self, reason: str) -> None:
        """Remember why."""
        self.reasons.append(reason)


def test_the_end_of_a_lease_ends_everything_under_it() -> None:
    """But not what has ended before, and not twice."""

    async def scenario() -> None:
        leases, kept, left = Leases(), Kept(), Kept()
        lease = leases.open()
        lease.join(kept)
        lease.join(left)
        lease.leave(left)

        leases.end(lease)
        leases.end(lease)

        assert (kept.reasons, left.reasons) == (["lease_ended"], [])
        assert await lease.wait_over(5)

    asyncio.run(scenario())


def test_nothing_can_join_a_lease_that_has_ended() -> None:
    """A sandbox born in the moment its client dies must not stay."""

    async def scenario() -> None:
        leases = Leases()
        lease = leases.open()
        leases.end(lease)
        with pytest.raises(SandboxGone):
            lease.join(Kept())
        with pytest.raises(SandboxGone):
            leases.get(lease.id)

    asyncio.run(scenario())


def test_a_request_without_a_lease_has_none() -> None:
    """Such a sandbox has only its TTLs."""

    async def scenario() -> None:
        assert Leases().get(None) is None

    asyncio.run(scenario())


def test_unused_means_no_lease_for_a_while() -> None:
    """Between two leases of one script the node must not go away."""

    async def scenario() -> None:
        leases = Leases()
        unused = asyncio.ensure_future(leases.wait_unused(linger_s=0.02, first_s=10))
        first = leases.open()
        await asyncio.sleep(0.04)
        leases.end(first)
        second = leases.open()
        await asyncio.sleep(0.04)
        assert not unused.done()
        leases.end(second)
        await asyncio.wait_for(unused, 5)

    asyncio.run(scenario())


def test_a_node_that_nobody_ever_used_ends_too() -> None:
    """Whoever started it died before its first lease."""

    async def scenario() -> None:
        await asyncio.wait_for(Leases().wait_unused(linger_s=10, first_s=0.01), 5)

    asyncio.run(scenario())


def test_a_lease_that_is_let_go_is_waited_for_and_held_again() -> None:
    """By its last connection only: one that broke before knows nothing of the next."""

    async def scenario() -> None:
        leases = Leases()
        lease = leases.open()
        first = leases.hold(lease)
        leases.let_go(lease, first, patience_s=60)
        second = leases.hold(lease)
        leases.let_go(lease, first, patience_s=0)
        assert leases.get(lease.id) is lease and lease.timer is None
        leases.let_go(lease, second, patience_s=0.01)
        assert await lease.wait_over(10)
        with pytest.raises(LeaseGone):
            leases.get(lease.id)
        leases.let_go(lease, second, patience_s=0)

    asyncio.run(scenario())
