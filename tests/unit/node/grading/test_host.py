"""Room for groups, CPUs for judges, sandboxes whose ends are looked after."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.grading.limits import CallLimits
from hotbed.node.grading.host import Lanes, Room, TenantRoom, box_limits
from hotbed.node.scheduler import Share
from hotbed.runtime.base import Limits
from tests.unit.node.grading.boxes import Forks


def test_room_is_given_in_turn() -> None:
    """A small group that comes later must not starve a large one that waits."""

    async def scenario() -> None:
        room, order = Room(4), list[str]()

        async def take(name: str, count: int) -> None:
            async with room.taken(count):
                order.append(name)
                await asyncio.sleep(0)

        async with room.taken(3):
            waiting = [asyncio.ensure_future(take(*each)) for each in (("large", 4), ("small", 1))]
            await asyncio.sleep(0)
            assert order == []
        await asyncio.gather(*waiting)
        assert order == ["large", "small"]
        assert room.free == 4

    asyncio.run(scenario())


def test_who_gives_up_lets_the_next_one_in() -> None:
    """Else everybody behind it would wait for room that is there."""

    async def scenario() -> None:
        room = Room(4)
        async with room.taken(2):
            large = asyncio.ensure_future(room._take(4))
            small = asyncio.ensure_future(room._take(1))
            await asyncio.sleep(0)
            large.cancel()
            await asyncio.wait_for(small, 1)
        room._give(1)
        assert (room.free, large.cancelled()) == (4, True)

    asyncio.run(scenario())


def test_room_granted_in_the_instant_of_giving_up_is_not_lost() -> None:
    """Both ways round: cancelled before the grant, and after it."""

    async def scenario() -> None:
        room = Room(2)
        await room._take(2)
        waiting = asyncio.ensure_future(room._take(2))
        await asyncio.sleep(0)
        room._give(2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert room.free == 2
        await room._take(2)
        waiting = asyncio.ensure_future(room._take(2))
        await asyncio.sleep(0)
        waiting.cancel()
        room._give(2)
        await asyncio.gather(waiting, return_exceptions=True)
        assert room.free == 2

    asyncio.run(scenario())


def test_a_cpu_is_shared_when_there_is_none_to_spare() -> None:
    """Several candidates alone on the machine may use all of it; a single one works in turn with its judge."""
    lanes = Lanes([0, 1])
    with lanes.taken(8) as first, lanes.taken(8) as second:
        with lanes.taken(8) as third:
            assert (first, third is None) == (None, False)
        assert second == 1
    with lanes.taken(1) as single:
        assert single == 0
    with Lanes([5]).taken(8) as only:
        assert only is None


def test_a_sandbox_is_discarded_at_the_end_of_its_block() -> None:
    """Also when the block fails; and a parked one is only used if that was asked for."""

    async def scenario() -> None:
        forks = Forks()
        host = forks.host(use_spares=False)
        with pytest.raises(ZeroDivisionError):
            async with host.sandbox(CallLimits(memory_mib=64), seed="ab" * 32, determinism="rng") as held:
                request = held.box.request  # type: ignore[attr-defined]  # the fake's
                assert request.limits is not None and request.limits.memory_mib == 64
                assert (request.seed, request.use_spare) == (bytes.fromhex("ab" * 32), False)
                _ = 1 / 0
        assert forks.made[0].ended
        await host.wait_ended()

    asyncio.run(scenario())


def test_a_pinned_program_has_no_spare_beside_it() -> None:
    """Where something waited already, the candidate would be another process number each time."""

    async def scenario() -> None:
        forks = Forks()
        host = forks.host(use_spares=True)
        for determinism, spare in (("none", True), ("rng", False)):
            running = await host.start("judge", seed="ab" * 32, determinism=determinism)  # type: ignore[arg-type]  # both are levels
            assert running.held.box.request.use_spare is spare  # type: ignore[attr-defined]  # the fake's
            running.end()
        await host.wait_ended()

    asyncio.run(scenario())


def test_limits_of_the_template_need_no_sandbox_of_their_own() -> None:
    """So that a parked one fits; others have a disk that is part of their memory."""
    base = Limits(memory_mib=1024)

    assert box_limits(base, CallLimits(memory_mib=1024)) is None
    changed = box_limits(base, CallLimits(memory_mib=256))
    assert changed is not None
    assert (changed.memory_mib, changed.disk_mib) == (256, 128)


def test_a_tenants_groups_line_up_in_its_own_part() -> None:
    """Half of its share, and never more than there is; its line delays nobody else's."""

    async def scenario() -> None:
        outer = Room(8)
        small = TenantRoom(Share(name="a", limit=8, waiting=1), outer)
        large = TenantRoom(Share(name="b", limit=4096, waiting=1), outer)
        assert (small.size, large.size) == (4, 8)
        async with small.taken(4):
            waiting = asyncio.get_running_loop().create_task(small._take(2))
            await asyncio.sleep(0)
            async with large.taken(4):
                assert (outer.free, waiting.done()) == (0, False)
        await waiting
        assert outer.free == 8

    asyncio.run(scenario())
