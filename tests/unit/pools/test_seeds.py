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


@pytest.mark.parametrize("seed", [-1, 1 << 256, "7", b"7", 1.0, True, "g" * 64, "ab " * 21 + "a"])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    """Not hashed into one; and what one is, is said, by a pool as by its reset."""
    for read in (pool_seed, lambda given: given_seeds(given, 1)):
        with pytest.raises(InvalidSeed) as refused:
            read(seed)
        assert "64 hex characters" in str(refused.value.hint)


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
    assert given_seeds((1 << 256) - 1, 2)[1] == 0


def test_a_resets_seed_has_every_form_that_a_seed_has() -> None:
    """One number in each; what would not fit into an environment's generator is hashed, for each worker another."""
    key = "c0ffee" + 58 * "0"
    long = given_seeds(key, 3)

    assert given_seeds(f"{5:064x}", 2) == given_seeds((5).to_bytes(32, "big"), 2) == [5, 6]
    assert given_seeds(bytes.fromhex(key), 3) == given_seeds(int(key, 16), 3) == long
    assert given_seeds([key, None, key], 3) == [long[0], None, long[0]]
    assert len(set(long)) == 3 and all(0 <= seed < 1 << 31 for seed in long if seed is not None)
    assert long[0] == 1555277340  # a recorded run must replay after an upgrade


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
