"""Over a pool, gymnasium's vector API gives what gymnasium's own vector environments give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hotbed.integrations.gymnasium import VectorEnv
from tests.support.walker import ACTIONS, OBSERVATIONS, Walker
from tests.unit.pools.conftest import Pooling, pooling

__all__ = ["pooling"]

MODES = ["next_step", "same_step", "disabled"]
Making = Callable[..., VectorEnv]


@pytest.fixture
def making(pooling: Pooling) -> Iterator[Making]:
    """Vector environments over pools of walkers."""
    made: list[VectorEnv] = []

    def make(n: int = 3, text: str = "", **options: Any) -> VectorEnv:
        pool, _ = pooling(n, text or Walker.source(), **options)
        made.append(VectorEnv(pool, observation_space=OBSERVATIONS, action_space=ACTIONS))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def same(left: Any, right: Any) -> None:
    """Equal in value, type and shape, however nested."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            same(left[key], right[key])
    elif isinstance(left, tuple) or (isinstance(left, np.ndarray) and left.dtype == object):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right


@pytest.mark.parametrize("mode", MODES)
def test_every_observation_reward_end_and_info_is_that_of_sync_vector_env(making: Making, mode: str) -> None:
    """The same environments, seeds and actions, over several episodes of different lengths."""
    ours = making(3, autoreset=mode)
    theirs = SyncVectorEnv([Walker] * 3, autoreset_mode=AutoresetMode(ours.autoreset_mode))
    same(ours.reset(seed=[3, 4, 5]), theirs.reset(seed=[3, 4, 5]))
    rng = np.random.default_rng(0)
    for number in range(25):
        actions = rng.integers(0, 2, 3)
        mine, other = ours.step(actions), theirs.step(actions)
        for left, right in zip(mine, other, strict=True):
            same(left, right)
        over = np.logical_or(mine[2], mine[3])
        if mode == "disabled" and over.any():
            seeds: list[int | None] = [100 + number + i for i in range(3)]
            begun = ours.reset(seed=seeds, options={"reset_mask": over})
            same(begun, theirs.reset(seed=list(seeds), options={"reset_mask": over}))
    theirs.close()


@pytest.mark.parametrize("mode", MODES)
def test_it_is_a_vector_environment_of_its_mode(making: Making, mode: str) -> None:
    """What wrappers and training loops look at."""
    envs = making(2, autoreset=mode)

    assert isinstance(envs, gymnasium.vector.VectorEnv)
    assert envs.metadata["autoreset_mode"].value.lower().replace("-", "_") in (mode, mode.replace("_", ""))
    assert (envs.num_envs, envs.single_action_space) == (2, ACTIONS)
    assert envs.observation_space.contains(envs.reset()[0])
    assert envs.unwrapped is envs


def test_gymnasiums_own_wrappers_go_over_it(making: Making) -> None:
    """Statistics of episodes, the one that everybody uses."""
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(making(2, autoreset="next_step"))
    envs.reset(seed=1)
    infos = [envs.step(np.zeros(2, np.int64))[4] for _ in range(12)]

    assert any("episode" in info for info in infos)


def test_observations_are_copies_unless_asked_otherwise(making: Making, pooling: Pooling) -> None:
    """As gymnasium's `copy`."""
    envs = making(2, autoreset="next_step")
    first, _ = envs.reset(seed=1)
    kept = first["position"].copy()
    envs.step(np.ones(2, np.int64))

    np.testing.assert_array_equal(first["position"], kept)


def test_a_worker_that_failed_is_a_truncated_episode_that_says_why(making: Making) -> None:
    """The training loop goes on; the others are untouched."""
    text = Walker.source().replace("def step(action):", "def step(action):\n    if action == 1: import os; os._exit(3)")
    envs = making(2, text, autoreset="next_step")
    before, _ = envs.reset(seed=1)
    after, rewards, terminated, truncated, infos = envs.step(np.array([0, 1]))
    again = envs.step(np.array([0, 0]))

    np.testing.assert_array_equal(after["position"][1], before["position"][1])
    assert (rewards[1], terminated.tolist(), truncated.tolist()) == (0.0, [False, False], [False, True])
    assert infos["failure_status"][1] == "exit"
    assert infos["_failure"].tolist() == [False, True]
    assert again[3].tolist() == [False, False]


def test_a_failure_in_same_step_mode_starts_anew_at_once(making: Making) -> None:
    """With the observation of the new episode."""
    text = Walker.source().replace("def step(action):", "def step(action):\n    if action == 1: import os; os._exit(3)")
    envs = making(2, text, autoreset="same_step")
    envs.reset(seed=1)
    _, _, _, truncated, infos = envs.step(np.array([0, 1]))

    assert truncated.tolist() == [False, True]
    assert infos["_final_obs"].tolist() == [False, True]
    assert envs.step(np.array([0, 0]))[3].tolist() == [False, False]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"reset_mask": [True, False]}, AssertionError),
        ({"reset_mask": np.array([1, 0])}, AssertionError),
        ({"reset_mask": np.array([True])}, AssertionError),
        ({"reset_mask": np.array([[True, True]])}, AssertionError),
        ({"reset_mask": np.array([False, False])}, AssertionError),
        ({"difficulty": 3}, ValueError),
    ],
)
def test_reset_options_that_make_no_sense_are_refused(making: Making, options: Any, error: type[Exception]) -> None:
    """As gymnasium refuses them, and never silently dropped."""
    with pytest.raises(error):
        making(2).reset(options=options)


def test_seeds_must_fit(making: Making) -> None:
    """One for each."""
    with pytest.raises(ValueError, match="3 seeds for 2"):
        making(2).reset(seed=[1, 2, 3])


def test_the_first_to_finish_come_first(making: Making) -> None:
    """EnvPool's send and recv, with the ids of those that came."""
    envs = making(3, autoreset="next_step")
    envs.reset(seed=1)
    envs.send(np.array([0, 1]), [2, 0])
    observations, rewards, _, _, infos = envs.recv(1)
    envs.recv()

    assert observations["position"].shape == (1, 2)
    assert rewards.shape == (1,)
    assert set(infos["env_id"]) <= {0, 2}


def test_step_async_and_step_wait_are_step(making: Making) -> None:
    """In two halves."""
    envs = making(2, autoreset="next_step")
    envs.reset(seed=1)
    envs.step_async(np.zeros(2, np.int64))

    assert envs.step_wait()[1].shape == (2,)


def test_spaces_of_every_kind_take_their_observations(pooling: Pooling) -> None:
    """Lists become arrays of the space's type."""
    text = (
        "from hotbed.env import serve\n"
        "serve(lambda s: [[1, 2.5], 3, 'abc', [1, 0]], lambda a: ([[0, a['x'][0]], a['y'], 'd', [0, 1]], 1, False, {}))"
    )
    observation = spaces.Tuple(
        [spaces.Box(0, 9, (2,), np.float32), spaces.Discrete(9), spaces.Text(5), spaces.MultiBinary(2)]
    )
    action = spaces.Dict(x=spaces.Box(0, 9, (1,), np.float64), y=spaces.Discrete(9))
    pool, _ = pooling(2, text)
    envs = VectorEnv(pool, observation_space=observation, action_space=action)
    first, _ = envs.reset()
    second = envs.step({"x": np.array([[4.0], [5.0]]), "y": np.array([1, 2])})[0]
    envs.close()

    assert first[0].dtype == np.float32
    assert first[2] == ("abc", "abc")
    np.testing.assert_array_equal(second[0], [[0, 4], [0, 5]])
    np.testing.assert_array_equal(second[1], [1, 2])
    assert second[3].dtype == np.int8


def test_closing_closes_the_pool(making: Making) -> None:
    """Once is enough, twice does no harm."""
    envs = making(2)
    envs.close()
    envs.close()

    assert envs.closed
