"""What gymnasium's own tests say of a vector environment (its tests/vector), said of one over a pool.

Not said, as there is nothing to say it of: shared memory, `call`, `get_attr` and `set_attr`, sub-environments whose
spaces differ, and seeds that stay when none is given (here each episode has one of its own).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from hotbed.integrations.gymnasium import VectorEnv
from tests.unit.pools.conftest import Pooling, pooling

__all__ = ["pooling"]

#: Counts up from 0; a worker's first action of all is its length of episodes, its others are its rewards.
COUNTER = """
from hotbed.env import serve
count, length = 0, 99
def reset(seed):
    global count
    count = 0
    return 0, {}
def step(action):
    global count, length
    if length == 99:
        length = int(action)
        return 0, 0, False, {}
    count += 1
    return count, float(action), count == length, {}
serve(reset=reset, step=step)
"""
NONE, FIRST, OTHERS = [False] * 3, [True, False, False], [False, True, True]
Expected = list[tuple[list[int], list[int], list[bool]]]

SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(5, start=-2),
    "box": spaces.Box(-1, 1, (2, 3), np.float32),
    "scalar box": spaces.Box(-1, 1, (), np.float64),
    "integer box": spaces.Box(0, 255, (4,), np.uint8),
    "unbounded box": spaces.Box(-np.inf, np.inf, (1,)),
    "multi binary": spaces.MultiBinary([2, 3]),
    "multi discrete": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "text": spaces.Text(8),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    "dict": spaces.Dict(a=spaces.Discrete(3), b=spaces.Dict(c=spaces.Box(0, 1, (2,)), d=spaces.MultiBinary(3))),
    "sequence": spaces.Sequence(spaces.Dict(x=spaces.Box(0, 1, (2,)))),
    "one of": spaces.OneOf((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    "graph": spaces.Graph(spaces.Box(-1, 1, (2,)), spaces.Discrete(4)),
    "graph without edges": spaces.Graph(spaces.Discrete(4), None),
}


@pytest.fixture
def counters(pooling: Pooling, request: pytest.FixtureRequest) -> Iterator[VectorEnv]:
    """Three that end after 2, 3 and 3 steps."""
    pool, _ = pooling(3, COUNTER, autoreset=request.param)
    envs = VectorEnv(pool, observation_space=spaces.Discrete(5), action_space=spaces.Discrete(5))
    envs.reset()
    envs.step(np.array([2, 3, 3]))
    observations, infos = envs.reset()
    assert (observations.tolist(), infos) == ([0, 0, 0], {})
    yield envs
    envs.close()


def expect(envs: VectorEnv, observations: list[int], rewards: list[int], terminated: list[bool]) -> dict[str, Any]:
    """Step each with the same action as ever; the infos."""
    found = envs.step(np.array([1, 2, 3]))
    assert [part.tolist() for part in found[:4]] == [observations, rewards, terminated, NONE]
    return found[4]


@pytest.mark.parametrize("counters", ["next_step"], indirect=True)
def test_the_step_after_an_end_is_the_reset(counters: VectorEnv) -> None:
    """Its action and its reward count for nothing."""
    assert counters.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert expect(counters, [1, 1, 1], [1, 2, 3], NONE) == {}
    assert expect(counters, [2, 2, 2], [1, 2, 3], FIRST) == {}
    assert expect(counters, [0, 3, 3], [0, 2, 3], OTHERS) == {}
    assert expect(counters, [1, 0, 0], [1, 0, 0], NONE) == {}


@pytest.mark.parametrize("counters", ["same_step"], indirect=True)
def test_the_step_that_ends_an_episode_resets_it(counters: VectorEnv) -> None:
    """What was seen last is in the infos."""
    assert counters.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert expect(counters, [1, 1, 1], [1, 2, 3], NONE) == {}
    for observations, terminated, final in (
        ([0, 2, 2], FIRST, [2, None, None]),
        ([1, 0, 0], OTHERS, [None, 3, 3]),
        ([0, 1, 1], FIRST, [2, None, None]),
    ):
        infos = expect(counters, observations, [1, 2, 3], terminated)
        assert infos["final_obs"].tolist() == final
        assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == terminated
        assert infos["final_info"] == {}


@pytest.mark.parametrize("counters", ["disabled"], indirect=True)
def test_what_is_over_is_reset_by_its_mask(counters: VectorEnv) -> None:
    """The others' observations stand."""
    assert counters.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    assert expect(counters, [1, 1, 1], [1, 2, 3], NONE) == {}
    assert expect(counters, [2, 2, 2], [1, 2, 3], FIRST) == {}
    observations, infos = counters.reset(options={"reset_mask": np.array(FIRST)})
    assert (observations.tolist(), infos) == ([0, 2, 2], {})
    assert expect(counters, [1, 3, 3], [1, 2, 3], OTHERS) == {}
    observations, infos = counters.reset(options={"reset_mask": np.array(OTHERS)})
    assert (observations.tolist(), infos) == ([1, 0, 0], {})
    assert expect(counters, [2, 1, 1], [1, 2, 3], FIRST) == {}


def test_infos_of_reset_and_step_are_batched_with_their_masks(pooling: Pooling) -> None:
    """Also that of the reset which a step was."""
    text = (
        "from hotbed.env import serve\n"
        "serve(lambda seed: (0, {'reset': True}), lambda a: (a if a < 3 else 0, 0, a >= 3, False, {'action': a}))"
    )
    pool, _ = pooling(1, text, autoreset="next_step")
    envs = VectorEnv(pool, observation_space=spaces.Discrete(4), action_space=spaces.Discrete(5))
    there = np.array([True])

    assert data_equivalence(envs.reset()[1], {"reset": there, "_reset": there})
    assert data_equivalence(envs.step(np.array([1]))[4], {"action": np.array([1]), "_action": there})
    assert envs.step(np.array([3]))[2].tolist() == [True]
    assert data_equivalence(envs.step(np.array([4]))[4], {"reset": there, "_reset": there})
    envs.close()


@pytest.mark.parametrize("name", SPACES)
def test_observations_and_actions_of_every_space_cross(pooling: Pooling, name: str) -> None:
    """What a space samples comes back as something that it contains, and the same."""
    space = SPACES[name]
    echo = "from hotbed.env import serve\nserve(lambda seed: first, lambda a: (a, 0, False, {}))"
    pool, _ = pooling(3, "first = None\n" + echo.replace("lambda seed: first", "lambda seed: None"))
    envs = VectorEnv(pool, observation_space=space, action_space=space)
    pool.reset()
    envs.action_space.seed(1)
    actions = envs.action_space.sample()
    observations = envs.step(actions)[0]

    assert envs.observation_space == batch_space(space, 3)
    assert observations in envs.observation_space
    assert data_equivalence(observations, actions)
    envs.close()


def test_seeds_count_up_and_are_told(pooling: Pooling) -> None:
    """`np_random_seed`, as a tuple."""
    pool, _ = pooling(4, COUNTER)
    envs = VectorEnv(pool, observation_space=spaces.Discrete(5), action_space=spaces.Discrete(5))
    envs.reset(seed=42)

    assert envs.np_random_seed == (42, 43, 44, 45)
    envs.reset()
    assert len(set(envs.np_random_seed)) == 4
    envs.close()
