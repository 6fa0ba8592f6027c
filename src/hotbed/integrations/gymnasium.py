"""A pool as a gymnasium vector environment (1.1 and later).

    pool = RLPool("./my_env", n=64, autoreset="next_step")
    envs = VectorEnv(pool, observation_space=Box(-1, 1, (4,)), action_space=Discrete(2))

The environment's own code is as for any pool; it says nothing of spaces, so they are given here. Its observations may
be nested lists or numpy arrays and are put into the spaces' types; infos are batched as gymnasium batches them. The
pool's `autoreset` is gymnasium's mode: "next_step", "same_step" or "disabled", the last with
`options={"reset_mask": ...}`.

Masks are refused with `AssertionError`, as gymnasium refuses them. `np_random_seed` is the seeds of the episodes.

A worker that failed is a truncated episode with reward 0.0, its last observation again, and `infos["failure"]` saying
why. Nothing that crosses a process boundary is as fast as `SyncVectorEnv` for environments that do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from hotbed.pools.entries import Batch
from hotbed.pools.vector import VectorPool

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}

Stepped = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class VectorEnv(GymnasiumVectorEnv[Any, Any, Any]):
    """The environments of a pool. Closing it closes the pool."""

    def __init__(
        self,
        pool: VectorPool,
        *,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        copy: bool = True,
    ) -> None:
        self.pool = pool
        self.num_envs = pool.n
        self.single_observation_space = observation_space
        self.single_action_space = action_space
        self.observation_space = batch_space(observation_space, pool.n)
        self.action_space = batch_space(action_space, pool.n)
        self.autoreset_mode = _MODES[pool.autoreset]
        self.metadata = {"autoreset_mode": self.autoreset_mode}
        self.render_mode = None
        self.copy = copy
        self._current = [_empty(observation_space) for _ in range(pool.n)]
        self._batch = create_empty_array(observation_space, n=pool.n, fn=np.zeros)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all environments, or in those of `options["reset_mask"]`."""
        mask = self._mask_of(dict(options or {}))
        if seed is not None and not isinstance(seed, int) and len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
        tasks = self.pool.reset(seed=seed, mask=mask)
        details = self.pool.details
        infos: dict[str, Any] = {}
        for index in np.flatnonzero(mask):
            self._observe(index, tasks[index], details[index])
            infos = self._add_info(infos, _info_of(details[index]), int(index))
        return self._observations(), infos

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # a tuple, as gymnasium's own two have it
        """The seed of each environment's episode."""
        return tuple(detail["seed"] for detail in self.pool.details)

    def step(self, actions: Any) -> Stepped:
        """One action for each environment."""
        return self._stepped(self.pool.step(self._split(actions)))

    def step_async(self, actions: Any) -> None:
        """Send the actions and return; `step_wait` gives what `step` would."""
        self.pool.step_async(self._split(actions))

    def step_wait(self) -> Stepped:
        """The results of the batch that `step_async` sent."""
        return self._stepped(self.pool.step_wait())

    def send(self, actions: Any, env_id: Sequence[int]) -> None:
        """Send actions to some environments, as EnvPool does."""
        space = batch_space(self.single_action_space, len(env_id))
        self.pool.send(list(iterate(space, actions)), [int(index) for index in env_id])

    def recv(self, k: int | None = None) -> Stepped:
        """The first `k` that finish: their observations and so on, with `infos["env_id"]` naming them."""
        results, rewards, _, details = self.pool.recv(k)
        chosen = [detail["index"] for detail in details]
        infos: dict[str, Any] = {}
        for result, detail in zip(results, details, strict=True):
            self._observe(detail["index"], result, detail)
            infos = self._add_info(infos, _info_of(detail), detail["index"])
        infos["env_id"] = np.array(chosen)
        batch = create_empty_array(self.single_observation_space, n=len(chosen), fn=np.zeros)
        observations = concatenate(self.single_observation_space, [self._current[i] for i in chosen], batch)
        return observations, _rewards(rewards), *_ends(details), infos

    def close_extras(self, **_: Any) -> None:
        """End the workers."""
        self.pool.close()

    def _stepped(self, batch: Batch) -> Stepped:
        results, rewards, _, details = batch
        infos: dict[str, Any] = {}
        for index, (result, detail) in enumerate(zip(results, details, strict=True)):
            if "final_observation" in detail:
                final = self._converted(index, detail["final_observation"], detail)
                infos = self._add_info(infos, {"final_obs": final, "final_info": detail["final_info"]}, index)
            self._observe(index, result, detail)
            infos = self._add_info(infos, _info_of(detail), index)
        return self._observations(), _rewards(rewards), *_ends(details), infos

    def _observe(self, index: int, value: Any, detail: dict[str, Any]) -> None:
        if detail.get("reset", detail["status"] == "ok"):  # else there is none, and the last one stands
            self._current[index] = _in_space(self.single_observation_space, value)

    def _converted(self, index: int, value: Any, detail: dict[str, Any]) -> Any:
        return _in_space(self.single_observation_space, value) if detail["status"] == "ok" else self._current[index]

    def _observations(self) -> Any:
        self._batch = concatenate(self.single_observation_space, self._current, self._batch)
        return deepcopy(self._batch) if self.copy else self._batch

    def _split(self, actions: Any) -> list[Any]:
        return list(iterate(self.action_space, actions))

    def _mask_of(self, options: dict[str, Any]) -> NDArray[np.bool_]:
        mask = options.pop("reset_mask", None)
        if options:
            raise ValueError(f"options {sorted(options)} do not reach the environments; only reset_mask is known")
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise AssertionError(f"options['reset_mask'] must be a numpy array of dtype bool, not {mask!r:.60}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise AssertionError(f"options['reset_mask'] must have shape ({self.num_envs},) and at least one True")
        return mask


def _empty(space: spaces.Space[Any]) -> Any:
    """An observation for an environment that has given none yet."""
    return next(iter(iterate(batch_space(space, 1), create_empty_array(space, n=1, fn=np.zeros))))


def _in_space(space: spaces.Space[Any], value: Any) -> Any:
    """What came over the wire, in the types that a space of gymnasium has."""
    if isinstance(space, spaces.Dict):
        return {name: _in_space(inner, value[name]) for name, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_in_space(inner, item) for inner, item in zip(space.spaces, value, strict=True))
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return np.asarray(value, dtype=space.dtype).reshape(space.shape)
    if isinstance(space, spaces.OneOf):
        return np.int64(value[0]), _in_space(space.spaces[int(value[0])], value[1])
    if isinstance(space, spaces.Sequence) and not space.stack:
        return tuple(_in_space(space.feature_space, item) for item in value)
    if isinstance(space, spaces.Graph):
        return _graph(space, *value)
    return space.dtype.type(value) if isinstance(space, spaces.Discrete) and space.dtype is not None else value


def _graph(space: spaces.Graph, nodes: Any, edges: Any, links: Any) -> spaces.GraphInstance:
    return spaces.GraphInstance(
        _rows(space.node_space, nodes),
        None if edges is None or space.edge_space is None else _rows(space.edge_space, edges),
        None if links is None else np.asarray(links, dtype=np.int32).reshape(-1, 2),
    )


def _rows(space: spaces.Box | spaces.Discrete, values: Any) -> NDArray[Any]:
    return np.asarray(values, dtype=space.dtype).reshape(-1, *(space.shape or ()))


def _info_of(detail: dict[str, Any]) -> dict[str, Any]:
    """The environment's own info, and why it failed if it did."""
    info: dict[str, Any] = detail["info"]
    if detail["status"] == "ok":
        return info
    return {**info, "failure": detail["reason"], "failure_status": detail["status"]}


def _rewards(rewards: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([reward or 0.0 for reward in rewards], dtype=np.float64)


def _ends(details: Sequence[dict[str, Any]]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    terminated = [bool(detail.get("terminated", False)) for detail in details]
    truncated = [bool(detail.get("truncated", False)) for detail in details]
    return np.array(terminated, dtype=np.bool_), np.array(truncated, dtype=np.bool_)
