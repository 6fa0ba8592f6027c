"""A dead worker's episode goes on elsewhere, or its failure stands; never with another episode in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.pools.conftest import COUNTER, Pooling

ONCE = "(open({path!r}, 'x').close(), os._exit(9)) if not os.path.exists({path!r}) else None"


def dies_once(tmp_path: Path) -> str:
    """A statement that kills the process the first time it runs."""
    return ONCE.format(path=str(tmp_path / "died"))


def test_a_crash_is_replayed_and_the_episode_goes_on(pooling: Pooling, tmp_path: Path) -> None:
    """Same seed, same actions, same observations; `details` says that it was recovered."""
    pool, workers = pooling(2, recover="replay")
    pool.reset()
    pool.step([0, 0])

    results, rewards, done, details = pool.step([dies_once(tmp_path), 0])
    after = pool.step([0, 0])

    assert results == [{"count": 2}, {"count": 2}]
    assert (rewards, done) == ([1.0, 1.0], [False, False])
    assert [detail.get("recovered", False) for detail in details] == [True, False]
    assert after[0] == [{"count": 3}, {"count": 3}]
    assert workers.opened == [0, 1, 0]


def test_an_action_that_kills_every_worker_fails_in_the_end(pooling: Pooling) -> None:
    """Tried twice, not for ever."""
    pool, workers = pooling(1, recover="replay")
    pool.reset()
    pool.step([0])

    _, rewards, done, details = pool.step(["os._exit(4)"])

    assert (rewards, done, details[0]["status"]) == ([0.0], [True], "exit")
    assert "not recovered: the same action failed again" in details[0]["reason"]
    assert workers.opened == [0, 0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('{"task": seed}', '{"task": os.getpid()}'), "the replayed reset gave another task"),
        (('{"count": count}', '{"count": count, "pid": os.getpid()}'), "replayed step 1 gave another observation"),
    ],
)
def test_another_world_is_not_passed_off_as_the_same(
    pooling: Pooling, tmp_path: Path, change: tuple[str, str], reason: str
) -> None:
    """An environment that is not deterministic cannot be recovered, and says so."""
    pool, _ = pooling(1, COUNTER.replace(*change), recover="replay")
    pool.reset()
    pool.step([0])

    _, _, done, details = pool.step([dies_once(tmp_path)])

    assert (done, details[0]["truncated"]) == ([True], True)
    assert f"not recovered: {reason}" in details[0]["reason"]


def test_a_hang_is_not_replayed(pooling: Pooling) -> None:
    """It would only hang again."""
    pool, workers = pooling(1, recover="replay", step_timeout_s=0.1)
    pool.reset()

    assert pool.step(["time.sleep(60)"])[3][0]["status"] == "timeout"
    assert workers.opened == [0]


def test_without_recovery_a_crash_is_a_crash(pooling: Pooling) -> None:
    """The default: no second chance that nobody asked for."""
    pool, workers = pooling(1)
    pool.reset()
    pool.step(["os._exit(1)"])

    assert workers.opened == [0]
