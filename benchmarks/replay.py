"""What a seed adds: rollouts without one, at level `rng` and at level `full`, one of each at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from benchmarks.lab import node
from benchmarks.measure import Latency, cpu_watch, interleaved, timings
from benchmarks.rollouts import used
from benchmarks.rows import Row
from hotbed import Client, rollout_once

Level = Literal["none", "rng", "full"]
LEVELS: tuple[Level, ...] = ("none", "rng", "full")
SEED = 7
READINGS = 2000
PARKING_S = 0.012  # a spare is parked while the caller does something else
_CLOCK = f"import time\nfor _ in range({READINGS}): time.time()\nprint(1)"
_PROGRAMS: Mapping[str, tuple[str | None, str | None]] = {  # code, command
    "warm code": ("print(1)", None),
    "cold exec": (None, "/usr/bin/python3 -c 'print(1)'"),
    "clock": (_CLOCK, None),
}
_BARS = {("warm code", "rng"): 1.0, ("cold exec", "rng"): 3.0}


def run(*, count: int) -> list[Row]:
    """One round."""
    with node() as (client, pid), cpu_watch((pid,)) as cpu:
        found: dict[str, Latency] = {}
        for name, program in _PROGRAMS.items():
            actions = {
                f"{name}, {level}": timings(rollout(client, program, level), gap_s=PARKING_S) for level in LEVELS
            }
            found |= interleaved(actions, count=count // (2 if name == "warm code" else 6), turn=1)
    rows = [added(name, level, found) for name in ("warm code", "cold exec") for level in ("rng", "full")]
    return [*rows, reading(found, used(cpu))]


def rollout(client: Client, program: tuple[str | None, str | None], level: Level) -> Callable[[], None]:
    """One rollout of a program at a level."""
    code, command = program
    seed = None if level == "none" else SEED

    def once() -> None:
        result = rollout_once("python", code=code, command=command, client=client, seed=seed, determinism=level)
        assert result.stdout == "1\n", result
        assert result.seed_ack == ("off" if level == "none" else "verified")

    return once


def added(name: str, level: Level, found: Mapping[str, Latency]) -> Row:
    """How much longer the middle rollout takes."""
    plain, pinned = found[f"{name}, none"], found[f"{name}, {level}"]
    return Row(
        name=f"{level} adds to {name}, p50",
        value=pinned.p50 - plain.p50,
        unit="ms",
        bar=_BARS.get((name, level)),
        note=f"{pinned.p50 / plain.p50:.2f} x the {plain.p50:.2f} ms without a seed",
    )


def reading(found: Mapping[str, Latency], note: str) -> Row:
    """What one reading of the clock costs at level `full`."""
    spent = found["clock, full"].p50 - found["clock, none"].p50
    return Row(name="full adds to a reading of the clock", value=spent / READINGS * 1000, unit="us", note=note)
