"""Admission: bounded, fair, refused before any side effect."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.errors import AtCapacity, QuotaExceeded
from hotbed.node.scheduler import Admission, Share, next_tenant


def admission(limit: int = 1, queue_limit: int = 10, wait_s: float = 10.0) -> Admission:
    """A small one."""
    return Admission(limit=limit, queue_limit=queue_limit, wait_s=wait_s)


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_who_holds_fewest_is_next_then_who_came_first() -> None:
    """The whole policy."""
    assert next_tenant({"a": 1, "b": 2}, {"a": 3, "b": 1}) == "b"
    assert next_tenant({"a": 1, "b": 2}, {"a": 3}) == "b"
    assert next_tenant({"a": 5, "b": 2}, {}) == "b"


def test_a_free_turn_is_taken_at_once_and_given_back_once() -> None:
    """Releasing twice must not make room for two."""

    async def scenario() -> None:
        gate = admission(limit=2)
        first, second = await gate.acquire("a"), await gate.acquire("a")
        assert gate.running == 2
        first.release()
        first.release()
        assert gate.running == 1
        second.release()
        assert gate.running == 0

    asyncio.run(scenario())


def test_a_full_queue_refuses_with_a_time_to_come_back() -> None:
    """Nothing has been done by then."""

    async def scenario() -> None:
        gate = admission(queue_limit=0)
        await gate.acquire("a")
        with pytest.raises(AtCapacity) as refusal:
            await gate.acquire("b")
        assert refusal.value.retry_after_s
        assert (gate.running, gate.queued, gate.refused) == (1, 0, 1)

    asyncio.run(scenario())


def test_waiting_has_an_end() -> None:
    """A client would rather hear that it should try elsewhere."""

    async def scenario() -> None:
        gate = admission(wait_s=0.01)
        await gate.acquire("a")
        with pytest.raises(AtCapacity, match="no turn"):
            await gate.acquire("a")
        assert gate.queued == 0

    asyncio.run(scenario())


def test_a_burst_of_one_tenant_does_not_delay_another() -> None:
    """The second tenant's only request goes before the rest of the first one's burst."""

    async def scenario() -> list[str]:
        gate = admission(limit=2)
        held = [await gate.acquire("burst") for _ in range(2)]
        order: list[str] = []

        async def work(tenant: str) -> None:
            turn = await gate.acquire(tenant)
            order.append(tenant)
            turn.release()

        works = [asyncio.ensure_future(work(tenant)) for tenant in ["burst"] * 4 + ["other"]]
        await settle()
        for turn in held:
            turn.release()
        await asyncio.gather(*works)
        assert (gate.running, gate.queued) == (0, 0)
        return order

    assert asyncio.run(scenario())[0] == "other"


def test_a_turn_is_never_given_to_who_was_just_cancelled() -> None:
    """Cancelled, but not yet run: the next one in the queue gets it."""

    async def scenario() -> None:
        gate = admission()
        turn = await gate.acquire("a")
        first = asyncio.ensure_future(gate.acquire("b"))
        second = asyncio.ensure_future(gate.acquire("c"))
        await settle()
        first.cancel()
        turn.release()
        (await asyncio.wait_for(second, 5)).release()
        assert first.cancelled() or first.done()
        assert (gate.running, gate.queued) == (0, 0)

    asyncio.run(scenario())


@pytest.mark.parametrize("moment", ["waiting", "granted"])
def test_who_is_cancelled_leaves_no_trace(moment: str) -> None:
    """A client that hangs up in the queue, even in the instant its turn comes, costs nobody a turn."""

    async def scenario() -> None:
        gate = admission()
        turn = await gate.acquire("a")
        waiter = asyncio.ensure_future(gate.acquire("b"))
        await settle()
        if moment == "granted":
            turn.release()
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        turn.release()
        assert (gate.running, gate.queued) == (0, 0)
        (await gate.acquire("c")).release()

    asyncio.run(scenario())


SHARE = Share(name="tenant a may have 2 sandboxes", limit=2, waiting=1)


def test_a_tenant_at_its_share_is_refused_what_it_would_keep() -> None:
    """Before anything is done, and however much room there is."""

    async def scenario() -> None:
        admission = Admission(limit=10, queue_limit=10, wait_s=5)
        held = [await admission.acquire("a", share=SHARE, patient=False) for _ in range(2)]
        with pytest.raises(QuotaExceeded, match="tenant a may have 2"):
            await admission.acquire("a", share=SHARE, patient=False)
        held[0].release()
        (await admission.acquire("a", share=SHARE, patient=False)).release()
        held[1].release()
        assert (admission.running, admission.held("a")) == (0, 0)

    asyncio.run(scenario())


def test_what_can_wait_waits_for_the_tenants_own_and_delays_nobody() -> None:
    """A tenant at its share is passed over; its line is bounded."""

    async def scenario() -> None:
        admission = Admission(limit=3, queue_limit=0, wait_s=5)
        held = [await admission.acquire("a", share=SHARE) for _ in range(2)]
        waiting = asyncio.get_running_loop().create_task(admission.acquire("a", share=SHARE))
        await asyncio.sleep(0)
        assert (admission.waiting("a"), admission.running) == (1, 2)
        with pytest.raises(AtCapacity, match="1 requests wait already"):
            await admission.acquire("a", share=SHARE)
        other = Share(name="tenant b", limit=2, waiting=1)
        (await asyncio.wait_for(admission.acquire("b", share=other), 1)).release()
        held[0].release()
        (await asyncio.wait_for(waiting, 1)).release()
        held[1].release()
        assert (admission.running, admission.queued) == (0, 0)

    asyncio.run(scenario())


def test_what_is_on_its_way_out_is_waited_for_and_not_refused() -> None:
    """A delete is answered when the sandbox is killed: a tenant at its limit may make the next one right then."""

    async def scenario() -> None:
        made = admission(limit=4)
        share = Share(name="tenant t may have 1", limit=1, waiting=5)
        first = await made.acquire("t", share=share, patient=False)
        first.leave()
        first.leave()
        assert (made.held("t"), made.kept("t")) == (1, 0)
        made.check_room("t", 1, share=share)

        second = asyncio.ensure_future(made.acquire("t", share=share, patient=False))
        await settle()
        assert not second.done()
        with pytest.raises(QuotaExceeded):
            await made.acquire("t", share=share, patient=False)
        with pytest.raises(QuotaExceeded):
            made.check_room("t", 1, share=share)

        first.release()
        first.leave()
        turn = await second
        assert (made.running, made.kept("t")) == (1, 1)
        turn.release()
        assert (made.running, made.kept("t"), made._leaving.total()) == (0, 0, 0)

    asyncio.run(scenario())
