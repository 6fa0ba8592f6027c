"""Every episode has a seed of its own, and the pool's seed gives them all again."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidSeed
from hotbed.pools.seeds import episode_seed, given_seeds, pool_seed
from tests.unit.pools.conftest import Pooling


def test_all_forms_of_a_seed_are_one() -> None:
    """int, bytes and hex, as everywhere."""
    assert pool_seed(7) == pool_seed((7).to_bytes(32, "big")) == pool_seed(f"{7:064x}")
    assert pool_seed(None) != pool_seed(None)


@pytest.mark.parametrize("seed", [-1, 1 << 256, "7", b"7", 1.0, True, "g" * 64])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    """Not hashed into one."""
    with pytest.raises(InvalidSeed):
        pool_seed(seed)


def test_episode_seeds_differ_and_fit_every_generator() -> None:
    """31 bits: numpy's legacy generator takes 32, torch's and random any."""
    seeds = {episode_seed(bytes(32), worker, episode) for worker in range(50) for episode in range(50)}

    assert len(seeds) == 2500
    assert all(0 <= seed < 1 << 31 for seed in seeds)


def test_episode_seeds_stay_what_they_are() -> None:
    """A recorded run must replay after an upgrade."""
    assert episode_seed(bytes(32), 0, 0) == 239468140


def test_an_int_counts_up_over_the_workers() -> None:
    """As gymnasium's vector environments do."""
    assert given_seeds(5, 3) == [5, 6, 7]
    assert given_seeds([4, None, 2], 3) == [4, None, 2]


@pytest.mark.parametrize("seed", ["x", 1.5, [1], [1, -1], [1, True]])
def test_seeds_that_are_none_are_refused(pooling: Pooling, seed: Any) -> None:
    """One int, or one for each."""
    pool, _ = pooling(2)
    with pytest.raises(InvalidSeed):
        pool.reset(seed=seed)


def test_without_seeds_episodes_follow_from_the_pools_own(pooling: Pooling) -> None:
    """Two pools of one seed see the same tasks, each worker and each episode another."""
    (one, _), (two, _) = pooling(2), pooling(2)

    first, second = one.reset() + one.reset(), two.reset() + two.reset()

    assert first == second
    assert len({task["task"] for task in first}) == 4
