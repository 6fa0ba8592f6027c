"""Copies of running environments, against a bare `os.fork` of a process with the same heap in the same run.

*shared*: env.py builds the heap and is loaded ahead (`preload=True`), and the environment has touched few of its pages.
*touched*: the same, with every object of it touched. *own*: each worker has loaded env.py itself, so every page of the
heap has to be copied. Snapshots are taken of an idle environment; a restore goes into a sandbox made for it; a fork
goes into a parked one, which is what the first copies of a batch get.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import percentiles
from benchmarks.rows import Row
from hotbed.runtime.backends.fork import ForkBackend, ForkSettings
from hotbed.runtime.base import Limits, TemplateSpec
from tests.support.forkable import ITEMS_PER_MIB, Environment, Forkable, write_env

SIZES_MIB = (10, 50, 200)
BARS = {"snapshot": 8.0, "restore": 16.7, "fork": 4.0}  # 12, 25 and 6 ms where a bare fork takes 1.5 ms
_HEAP = 'HEAP = {i: {"k": i, "v": [i] * 20, "s": str(i) * 8} for i in range(%d)}\n'
_TOUCH = "R = sum(len(value['v']) + len(value['s']) for value in HEAP.values())"
_BARE = """
import gc, json, os, sys, time
exec(sys.argv[1])
gc.collect(); gc.freeze()
taken = []
for _ in range(int(sys.argv[2]) + 5):
    time.sleep(0.002)
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    taken.append(time.perf_counter() - begun)
print(json.dumps(taken[5:]))
"""


def run(*, count: int) -> list[Row]:
    """One round, in a process of its own: the backend wants to be made before any thread is."""
    rows = []
    for size in SIZES_MIB:
        before = bare_fork(size)
        argv = [sys.executable, "-m", "benchmarks.livefork", str(size), str(max(5, count // 20))]
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
        bare = percentiles(before + bare_fork(size)).p50
        rows.append(Row(name=f"bare fork, {size} MiB", value=bare, unit="ms"))
        for name, measured in json.loads(done.stdout).items():
            rows.append(_row(size, name, measured, bare))
    return rows


def _row(size: int, name: str, measured: dict[str, float], bare: float) -> Row:
    what, heap = name.split(", ")
    return Row(
        name=f"{what}, {size} MiB, {heap}",
        value=measured["p50"],
        unit="ms",
        ratio=measured["p50"] / bare,
        of="bare fork",
        bar=BARS[what] if (size, heap) == (50, "shared") else None,
        note=f"{measured['mib']:.1f} MiB kept",
    )


def bare_fork(size_mib: int, count: int = 30) -> list[float]:
    """Seconds of fork, exit and wait of a process with such a heap."""
    argv = [sys.executable, "-c", _BARE, _HEAP % int(size_mib * ITEMS_PER_MIB), str(count)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    return list(json.loads(done.stdout))


async def measure(backend: ForkBackend, env_dir: Path, size_mib: int, count: int) -> dict[str, dict[str, float]]:
    """Every kind of heap of one size."""
    await backend.start()
    found: dict[str, dict[str, float]] = {}
    try:
        for kind in ("shared", "own"):
            forkable = Forkable(backend, await backend.template(_spec(env_dir, size_mib, kind)))
            try:
                original = await forkable.environment()
                await original.reset()
                await _rounds(forkable, original, count, kind, found)
                if kind == "shared":
                    await original.run(_TOUCH)
                    await _rounds(forkable, original, count, "touched", found)
            finally:
                forkable.close()
    finally:
        await backend.close()
    return found


def _spec(env_dir: Path, size_mib: int, kind: str) -> TemplateSpec:
    """Templates that have loaded env.py, which builds the heap, and that have not."""
    plan = {"paths": [], "modules": [], "env": "/env/env.py" if kind == "shared" else None}
    return TemplateSpec(
        name=f"heap-{size_mib}-{kind}",
        preload=("json", "random", "subprocess", "hotbed.guest.environments.env_preload"),
        programs=("env_server",),
        env=(("HOTBED_ENV_PRELOAD", json.dumps(plan)),),
        mounts=((str(env_dir), "/env"),),
        limits=Limits(memory_mib=2048),
    )


async def _rounds(
    forkable: Forkable, original: Environment, count: int, kind: str, found: dict[str, dict[str, float]]
) -> None:
    taken: dict[str, list[float]] = {"snapshot": [], "restore": [], "fork": []}
    size = 0
    for _ in range(count):
        await original.step()
        await asyncio.sleep(0.01)
        begun = time.perf_counter()
        snapshot = await forkable.snapshot(original, verify=False)
        taken["snapshot"].append(time.perf_counter() - begun)
        size = snapshot.size
        for what, parked in (("restore", False), ("fork", True)):
            if parked:
                await forkable.template.vessels.wait_parked()
            await asyncio.sleep(0.01)
            begun = time.perf_counter()
            copy = await forkable.restore(snapshot, verify=False, parked=parked)
            taken[what].append(time.perf_counter() - begun)
            await copy.kill()
        await forkable.livefork.release(snapshot)
    for what, seconds in taken.items():
        found[f"{what}, {kind}"] = {"p50": percentiles(seconds).p50, "mib": size / 2**20}


def main(size_mib: int, count: int) -> dict[str, Any]:
    """Measure one size on a backend of its own."""
    with tempfile.TemporaryDirectory(prefix="hotbed-bench-") as name:
        env_dir = write_env(Path(name), heap_mib=size_mib)
        backend = ForkBackend(ForkSettings(spares=0, run_dir=name))
        return asyncio.run(measure(backend, env_dir, size_mib, count))


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
