"""Clocks: latencies, and the CPU that this run and everything else used meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_TURN = 20
_WARM = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds."""

    p50: float
    p99: float


def percentiles(seconds: list[float]) -> Latency:
    """The middle and the slow end."""
    ordered = sorted(seconds)
    return Latency(
        p50=1e3 * ordered[len(ordered) // 2], p99=1e3 * ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    )


Timings = Callable[[int], list[float]]


def timings(action: Callable[[], object], *, gap_s: float = 0.001) -> Timings:
    """Does the action so often, with the pause between two that a caller's own work makes; the seconds each took."""

    def measure(count: int) -> list[float]:
        taken = []
        for _ in range(count):
            time.sleep(gap_s)
            begun = time.perf_counter()
            action()
            taken.append(time.perf_counter() - begun)
        return taken

    return measure


def interleaved(things: Mapping[str, Timings], *, count: int, turn: int = _TURN) -> dict[str, Latency]:
    """Measure several things in small turns, so that a change of the machine's mood meets all of them.

    Turns of one where a difference is what is wanted: the moods of this machine change within a second.
    """
    taken: dict[str, list[float]] = {name: [] for name in things}
    for measure in things.values():
        measure(_WARM)
    while len(next(iter(taken.values()))) < count:
        for name, measure in things.items():
            taken[name] += measure(turn)
    return {name: percentiles(seconds) for name, seconds in taken.items()}


@dataclass(slots=True)
class Cpu:
    """Cores in use while something ran: by this run (this process and the nodes it started), and by everything else."""

    ours: float = 0.0
    others: float = 0.0
    steal: float = 0.0
    wall_s: float = 0.0


@contextmanager
def cpu_watch(node_pids: tuple[int, ...] = ()) -> Iterator[Cpu]:
    """Fills in a `Cpu` at the end of the block."""
    cpu = Cpu()
    wall, ours, (busy, steal) = time.perf_counter(), _our_seconds(node_pids), _machine_seconds()
    yield cpu
    cpu.wall_s = time.perf_counter() - wall
    busy_now, steal_now = _machine_seconds()
    cpu.ours = (_our_seconds(node_pids) - ours) / cpu.wall_s
    cpu.steal = (steal_now - steal) / cpu.wall_s
    cpu.others = max(0.0, (busy_now - busy) / cpu.wall_s - cpu.ours)


def _machine_seconds() -> tuple[float, float]:
    """Seconds in which the machine's cores were busy, and in which they were taken from it."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq) / _TICK, steal / _TICK


def _our_seconds(node_pids: tuple[int, ...]) -> float:
    """CPU of this process, its children that ended, and everything below the nodes, living or reaped."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + _tree_seconds(node_pids)


def _tree_seconds(roots: tuple[int, ...]) -> float:
    spent: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended while we looked
            children.setdefault(int(fields[1]), []).append(int(entry))
            spent[int(entry)] = sum(map(int, fields[11:15])) / _TICK
    total, waiting = 0.0, list(roots)
    while waiting:
        pid = waiting.pop()
        total += spent.get(pid, 0.0)
        waiting += children.get(pid, [])
    return total
