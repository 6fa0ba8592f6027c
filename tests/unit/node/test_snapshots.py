"""Whose snapshots are, how many there may be, and what a node without live fork says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, NotFound, SnapshotUnsupported
from hotbed.node import snapshots as module
from hotbed.node.leases import Lease
from hotbed.node.nursery import Nursery
from hotbed.node.snapshots import Snapshots, SnapshotSettings
from hotbed.runtime.snapshots import LiveFork
from hotbed.wire.snapshots import RestoreWorkers, TakeSnapshot
from tests.unit.node.pooling import pooling_node, wanted


class Taking(LiveFork):
    """Live fork that copies nothing."""

    def __init__(self) -> None:
        self.live: list[Any] = []

    async def snapshot(self, box: Any, program: Any, *, skip: bool = False, verify: bool = False) -> Any:
        """A thing of a size."""
        self.live.append(SimpleNamespace(size=100, layer_bytes=40, skipped=()))
        return self.live[-1]

    async def release(self, snapshot: Any) -> None:
        """Free it."""
        self.live.remove(snapshot)

    def is_alive(self, snapshot: Any) -> bool:
        """Whether it was not freed."""
        return snapshot in self.live


def scenario(
    monkeypatch: pytest.MonkeyPatch, body: Callable[[Snapshots, Taking, Any], Awaitable[None]], **settings: Any
) -> None:
    """Run with snapshots of a pool that has one environment."""

    async def main() -> None:
        livefork, nursery = Taking(), Nursery()
        monkeypatch.setattr(module, "_environment", lambda pool, index: (None, None))
        template = SimpleNamespace(spec=SimpleNamespace(name="env"))
        pool = SimpleNamespace(id="pl_1", lease=Lease(), template=template)
        held = Snapshots(SnapshotSettings(**settings), backend=SimpleNamespace(livefork=livefork), nursery=nursery)
        await body(held, livefork, pool)
        await nursery.wait_empty(timeout_s=1)

    asyncio.run(main())


def test_a_snapshot_ends_with_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is listed until then."""

    async def body(held: Snapshots, livefork: Taking, pool: Any) -> None:
        kept = await held.take(pool, TakeSnapshot(worker=0))
        assert (held.get(kept.id).row().size, held.size, len(held)) == (100, 100, 1)
        pool.lease.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (len(held), livefork.live) == (0, [])
        with pytest.raises(NotFound):
            held.get(kept.id)
        kept.discard("again")

    scenario(monkeypatch, body)


@pytest.mark.parametrize("settings", [{"count": 2}, {"size": 150}])
def test_there_is_a_cap_on_all_together(monkeypatch: pytest.MonkeyPatch, settings: dict[str, int]) -> None:
    """The new one is refused, and says how to make room."""

    async def body(held: Snapshots, _livefork: Taking, pool: Any) -> None:
        first = await held.take(pool, TakeSnapshot(worker=0))
        await held.take(pool, TakeSnapshot(worker=0))
        with pytest.raises(AtCapacity, match="free some"):
            await held.take(pool, TakeSnapshot(worker=0))
        first.discard("freed")
        await held.take(pool, TakeSnapshot(worker=0))

    scenario(monkeypatch, body, **settings)


def test_time_frees_what_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lease there is still a limit."""

    async def body(held: Snapshots, livefork: Taking, pool: Any) -> None:
        pool.lease = None
        await held.take(pool, TakeSnapshot(worker=0))
        await asyncio.sleep(0.05)
        assert livefork.live == []

    scenario(monkeypatch, body, ttl_s=0.01)


def test_a_backend_that_cannot_says_so(tmp_path: Path) -> None:
    """No fallback; a worker that is not there is told apart."""

    async def main() -> None:
        async with pooling_node(tmp_path / "home") as node:
            pool = node.pools.get((await node.pools.create(await wanted(node, tmp_path), None)).id)
            with pytest.raises(SnapshotUnsupported):
                await node.snapshots.take(pool, TakeSnapshot(worker=0))
            with pytest.raises((NotFound, SnapshotUnsupported)):
                await node.snapshots.restore(pool, RestoreWorkers(snapshot="sn_none", workers=(0,)))
            await pool.close("over")

    asyncio.run(main())


def test_another_tenants_snapshot_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tenants' pools of one directory share a template; what is in them they do not."""

    async def body(held: Snapshots, livefork: Taking, pool: Any) -> None:
        pool.lease.tenant = object()
        pool.request = SimpleNamespace(mode="default")
        kept = await held.take(pool, TakeSnapshot(worker=0))
        request = RestoreWorkers(snapshot=kept.id, workers=(0,))
        foreign = Lease()
        foreign.tenant = object()  # type: ignore[assignment]  # any other one
        with pytest.raises(NotFound, match="no snapshot"):
            await held.restore(SimpleNamespace(request=pool.request, lease=foreign), request)  # type: ignore[arg-type]  # as far as it is looked at
        assert held.get(kept.id, seen_by=pool.lease) is kept

    scenario(monkeypatch, body)


def test_boltz_environments_are_not_copied() -> None:
    """They are forks of one state already."""
    pool: Any = SimpleNamespace(request=SimpleNamespace(mode="boltz"))
    held = Snapshots(SnapshotSettings(), backend=None, nursery=Nursery())
    with pytest.raises(SnapshotUnsupported, match="boltz"):
        asyncio.run(held.restore(pool, RestoreWorkers(snapshot="sn_1", workers=(0,))))
    with pytest.raises(SnapshotUnsupported, match="boltz"):
        module._environment(pool, 0)


def test_a_dead_environment_is_not_copied() -> None:
    """Reset it first."""
    worker = SimpleNamespace(held=SimpleNamespace(box=None), program=None, is_alive=False)
    pool: Any = SimpleNamespace(request=SimpleNamespace(mode="default"), worker=lambda _: worker)
    with pytest.raises(InvalidRequest, match="has ended"):
        module._environment(pool, 0)
