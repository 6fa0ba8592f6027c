"""The caller's side of copies: what is known of an episode goes along, and misuse runs nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest, NotReset, SandboxGone
from hotbed.pools.branching import BranchingPool, Restored, Taken, fork_seed
from hotbed.pools.contract import PoolOptions
from hotbed.pools.lanes import Lanes
from hotbed.pools.recording import Recorder
from tests.unit.pools.conftest import COUNTER
from tests.unit.pools.local_workers import LocalWorkers


class Copying(LocalWorkers):
    """Workers whose copies are fresh processes: only what the caller's side does with them is tested here."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[tuple[Any, ...]] = []
        self.failing: dict[int, str] = {}

    def snapshot(self, index: int, *, skip: bool, verify: bool) -> Taken:
        """A name."""
        self.asked.append(("snapshot", index, skip, verify))
        return Taken(id="sn_1", size=3 << 20, skipped=("a socket",) if skip else ())

    def restore(self, snapshot: str, indices: Sequence[int], *, verify: bool) -> Restored:
        """Nothing but a note."""
        self.asked.append(("restore", snapshot, tuple(indices)))
        return Restored(failed={index: self.failing[index] for index in indices if index in self.failing})

    def fork(self, index: int, targets: Sequence[int], *, skip: bool, verify: bool) -> Restored:
        """Nothing but a note."""
        self.asked.append(("fork", index, tuple(targets)))
        return Restored()

    def free(self, snapshot: str) -> None:
        """Nothing but a note."""
        self.asked.append(("free", snapshot))


Made = tuple[BranchingPool, Copying]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Four workers, of which a copy says nothing first, as a restored one does."""
    (tmp_path / "env.py").write_text(COUNTER)
    workers = Copying(tmp_path / "env.py")
    options = PoolOptions(n=4, step_timeout_s=20.0, reset_timeout_s=20.0)
    pool = BranchingPool(options, workers, seed=bytes(32))
    opening, lanes = pool._engine.adopt, pool._engine._lanes
    assert isinstance(lanes, Lanes)

    def adopt(indices: Sequence[int]) -> None:
        opening(indices)
        for index in indices:  # a fresh process says `ready`, which a restored one has said long ago
            fresh = lanes._lanes[index]
            fresh.awaiting, fresh.deadline_s = 1, time.perf_counter() + 20
        lanes.collect(indices, len(indices))

    monkeypatch.setattr(pool._engine, "adopt", adopt)
    yield pool, workers
    pool.close()
    workers.close()


def test_a_copy_is_where_its_original_was(made: Made) -> None:
    """Steps, seed and episode; the original's own goes on untouched."""
    pool, workers = made
    pool.reset(seed=[5, 6, 7, 8])
    pool.step([0, 0, 0, 0])
    with pool.snapshot(1) as snapshot:
        pool.step([0, 0, 0, 0])
        pool.restore(snapshot, [0, 2])

    assert (snapshot.step, snapshot.seed, snapshot.worker) == (1, 6, 1)
    assert "after 1 steps, 3.0 MiB" in repr(snapshot)
    assert [detail["step"] for detail in pool.details] == [1, 2, 1, 2]
    assert [detail["seed"] for detail in pool.details] == [6, 6, 6, 8]
    assert workers.asked == [("snapshot", 1, False, False), ("restore", "sn_1", (0, 2)), ("free", "sn_1")]
    snapshot.free()
    assert workers.asked[-1] == ("free", "sn_1") and len(workers.asked) == 3


def test_each_fork_gets_a_seed_of_its_own(made: Made) -> None:
    """Derived, unless told otherwise; the worker acknowledges it."""
    pool, _ = made
    pool.reset(seed=[5, 6, 7, 8])

    assert pool.fork(0, [1, 2, 3]) == [1, 2, 3]
    first = [detail["seed"] for detail in pool.details]
    pool.fork(0, [1, 2, 3], seeds="same")
    same = [detail["seed"] for detail in pool.details]
    pool.fork(0, [1, 2], seeds=[40, 41])

    assert first == [5, *(fork_seed(bytes(32), 5, number) for number in range(3))]
    assert same == [5, 5, 5, 5]
    assert [detail["seed"] for detail in pool.details][1:3] == [40, 41]
    assert [detail["status"] for detail in pool.details] == ["ok", "forked", "forked", "forked"]
    assert pool.step([0] * 4)[0] == [{"count": 1}] * 4


def test_copies_go_to_workers_that_run_nothing(made: Made) -> None:
    """When only their number is given."""
    pool, _ = made
    pool.reset(mask=[True, True, False, False])

    assert pool.fork(0, n=2) == [2, 3]
    with pytest.raises(InvalidRequest, match="0 other workers"):
        pool.fork(0, n=1)


def test_a_copy_that_could_not_be_made_is_a_failed_worker(made: Made) -> None:
    """The others are there; a reset brings it back."""
    pool, workers = made
    pool.reset()
    workers.failing = {2: "no memory"}
    with pytest.raises(SandboxGone, match="no memory"):
        pool.restore(pool.snapshot(0), [1, 2])
    results, _, _, details = pool.step([0] * 4)

    assert [detail["status"] for detail in details] == ["ok", "ok", "lost", "ok"]
    assert results[1] == {"count": 1} and results[2] is None
    assert all(pool.reset())


def test_misuse_asks_nobody(made: Made) -> None:
    """The keeper of the workers hears nothing of it."""
    pool, workers = made
    for wrong in (lambda: pool.snapshot(0), lambda: pool.fork(0, [1])):
        with pytest.raises(NotReset):
            wrong()
    pool.reset()
    for misuse in (
        lambda: pool.fork(0),
        lambda: pool.fork(0, [1], n=1),
        lambda: pool.fork(0, [0]),
        lambda: pool.fork(0, [9]),
        lambda: pool.fork(0, [1], seeds=[1, 2]),
        lambda: pool.fork(0, [1], seeds=[-1]),
        lambda: pool.snapshot(9),
    ):
        with pytest.raises(InvalidRequest):
            misuse()

    assert workers.asked == []


def test_a_recorded_copy_is_an_episode_that_says_so(made: Made) -> None:
    """What it replaces is over; what it goes on from is not told twice."""
    pool, workers = made
    pool._recorder = Recorder(workers.record)
    pool.reset(seed=5)
    pool.step([0] * 4)
    pool.fork(0, [1])
    pool.step([1] * 4)
    pool.close()

    ends = [(one.worker, one.branched, one.actions) for one in workers.episodes]
    assert ends == [(1, False, "[0]"), (0, False, "[0,1]"), (2, False, "[0,1]"), (3, False, "[0,1]"), (1, True, "[1]")]
