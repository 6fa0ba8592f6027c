"""Pools: steps of trivial environments against gymnasium's vector environments, resets, and what a parked one holds.

An environment here does next to nothing, so that what is measured is the way there and back. gymnasium's environments
return a small numpy array, which is the case it is made for; ours return a small dict, as JSON. Theirs run in plain
processes, ours in sandboxes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from benchmarks.lab import node
from benchmarks.measure import cpu_watch
from benchmarks.rollouts import used
from benchmarks.rows import Row
from hotbed import Client, RLPool
from hotbed.cli.leavings import nested_processes
from hotbed.cli.memory import used_mib

ENV = """
from hotbed.env import serve
t, x = 0, [0.0, 0.0, 0.0, 0.0]
def reset(seed):
    return {"t": 0, "x": x, "msg": "new"}
def step(action):
    global t
    t += 1
    x[0] = float(t & 7)
    return {"t": t, "x": x, "msg": "ok"}, 1.0, False, {}
serve(reset=reset, step=step)
"""
BARS = {1: (1.0, None), 8: (1.5, 2.5), 64: (2.0, 4.0)}
PARKED = 100
PARKED_BAR_MIB = 2.0
_TURN_S = 0.25
_TURNS = 6

Action = Callable[[], object]


class Toy(gymnasium.Env[Any, Any]):
    """gymnasium's side: an array of four numbers."""

    observation_space = spaces.Box(0, 1, (4,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin."""
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go on."""
        return np.zeros(4, np.float32), 1.0, False, False, {}


def run(*, count: int) -> list[Row]:
    """One round."""
    with env_dir() as directory, tempfile.TemporaryDirectory() as home:
        with node(home=home, boltz_slots=2) as (client, pid), cpu_watch((pid,)) as cpu:
            rows = [row for n in BARS for row in steps(client, directory, n)]
            rows += [row for mode in ("default", "boltz") for row in resets(client, directory, mode)]
        with node(home=home, boltz_slots=2, spares=0) as (client, _):
            rows += parked(client, directory)
    rows[0] = Row(**{**{name: getattr(rows[0], name) for name in Row.__slots__}, "note": used(cpu)})
    return rows


@contextmanager
def env_dir() -> Iterator[Path]:
    """The environment's directory."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "env.py").write_text(ENV)
        yield Path(directory)


def steps(client: Client, directory: Path, n: int) -> list[Row]:
    """Batches a second, measured in small turns."""
    asynchronous, synchronous = AsyncVectorEnv([Toy] * n), SyncVectorEnv([Toy] * n)
    actions = np.zeros(n, np.int64)
    try:
        with RLPool(directory, n, client=client) as pool:
            pool.reset()
            asynchronous.reset()
            synchronous.reset()
            rates = alternating(
                {
                    "pool": lambda: pool.step(actions),
                    "async": lambda: asynchronous.step(actions),
                    "sync": lambda: synchronous.step(actions),
                }
            )
    finally:
        asynchronous.close()
        synchronous.close()
    bar, stretch = BARS[n]
    return [
        Row(
            name=f"RLPool.step, n = {n}, against AsyncVectorEnv",
            value=rates["pool"],
            unit="batches/s",
            ratio=rates["pool"] / rates["async"],
            of="AsyncVectorEnv",
            bar=bar,
            stretch=stretch,
            higher_is_better=True,
        ),
        Row(
            name=f"RLPool.step, n = {n}, against SyncVectorEnv, in one process",
            value=rates["pool"],
            unit="batches/s",
            ratio=rates["pool"] / rates["sync"],
            of="SyncVectorEnv",
            higher_is_better=True,
        ),
    ]


def alternating(things: Mapping[str, Action]) -> dict[str, float]:
    """The best rate of each over several turns, so that a change of the machine's mood meets all of them."""
    best = dict.fromkeys(things, 0.0)
    for _ in range(_TURNS):
        for name, action in things.items():
            best[name] = max(best[name], rate(action))
    return best


def rate(action: Action) -> float:
    """How often a second, over one turn."""
    action()
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < _TURN_S:
        action()
        done += 1
    return done / (time.perf_counter() - begun)


def resets(client: Client, directory: Path, mode: Any) -> list[Row]:
    """All of 16 environments anew: by their own `reset` in default mode, by a fork each in boltz mode."""
    with RLPool(directory, 16, mode, client=client) as pool:
        pool.reset()
        taken = []
        for _ in range(20):
            begun = time.perf_counter()
            pool.reset()
            taken.append(time.perf_counter() - begun)
    value = 1e3 * sorted(taken)[len(taken) // 2]
    return [Row(name=f"RLPool.reset, n = 16, {mode}, p50", value=value, unit="ms")]


def parked(client: Client, directory: Path) -> list[Row]:
    """What an environment holds while it waits for its next action."""
    with RLPool(directory, 1, "boltz", client=client) as warm:
        warm.reset()
    before, free = set(nested_processes()), used_mib()
    with RLPool(directory, PARKED, "boltz", client=client) as pool:
        pool.reset()
        for _ in range(5):
            pool.step([0] * PARKED)
        held = [pss_mib(pid) for pid in set(nested_processes()) - before]
        machine = (used_mib() - free) / PARKED
    return [
        Row(
            name="boltz, a parked environment, PSS",
            value=sum(held) / PARKED,
            unit="MiB",
            bar=PARKED_BAR_MIB,
            note=f"{len(held) / PARKED:.1f} processes each; {machine:.2f} MiB each with what the kernel holds for it",
        )
    ]


def pss_mib(pid: int) -> float:
    """A process's proportional share of memory."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(text.partition("\nPss:")[2].split()[0]) / 1024
