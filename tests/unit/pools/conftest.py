"""Pools over plain processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed.pools.contract import PoolOptions
from hotbed.pools.vector import VectorPool
from tests.unit.pools.local_workers import LocalWorkers

Pooling = Callable[..., tuple[VectorPool, LocalWorkers]]

COUNTER = """
import os, signal, sys, time
from hotbed.env import serve
count = 0
def reset(seed):
    global count
    count = 0
    return {"task": seed}
def step(action):
    global count
    count += 1
    if isinstance(action, str):
        exec(action, globals())
    return {"count": count}, 1.0, count >= 3, {"note": "n"}
serve(reset=reset, step=step)
"""


@pytest.fixture
def pooling(tmp_path: Path) -> Iterator[Pooling]:
    """Make a pool of an env.py's text, and get at its workers."""
    made: list[tuple[VectorPool, LocalWorkers]] = []

    def make(
        n: int = 2, text: str = COUNTER, *, slots: int | None = None, preload: bool = False, **options: Any
    ) -> tuple[VectorPool, LocalWorkers]:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        (directory / "env.py").write_text(text)
        workers = LocalWorkers(directory / "env.py", preload=preload)
        chosen = PoolOptions(n=n, **{"step_timeout_s": 20.0, "reset_timeout_s": 20.0, **options})
        made.append((VectorPool(chosen, workers, seed=bytes(32), slots=slots), workers))
        return made[-1]

    yield make
    for pool, workers in made:
        pool.close()
        workers.close()
