"""`rollout_once` one after the other: fresh forks, parked spares, code and commands."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.baselines import CODE, EXPECTED, BareFork, cold, settle, under_bwrap
from benchmarks.lab import node
from benchmarks.measure import Cpu, Latency, cpu_watch, interleaved, timings
from benchmarks.rows import Row
from hotbed import Client, Sandbox, rollout_once

BARE, COLD, BWRAP = "bare os.fork", "python3 -c", "bwrap python3 -c"
_PARKING_S = 0.004  # a spare is parked while the caller does something else


def run(*, count: int) -> list[Row]:
    """One round: a node that parks nothing, one that does, and the baselines in between."""
    with BareFork() as bare:
        fresh = measure_fresh(bare, count)
        settle()
        return fresh + measure_parked(bare, count)


def measure_fresh(bare: BareFork, count: int) -> list[Row]:
    """Each sandbox is forked on request."""
    with node(spares=0) as (client, pid), cpu_watch((pid,)) as cpu:
        found = interleaved(
            {
                BARE: bare,
                "rollout, fresh": timings(lambda: one(client)),
                "rollout, fresh, back to back": timings(lambda: one(client), gap_s=0),
                "rollout, fresh, command": timings(lambda: one_command(client)),
            },
            count=count,
        )
        slow = {COLD: cold(), BWRAP: under_bwrap()}
        found |= interleaved({name: action for name, action in slow.items() if action}, count=count // 8)
    return [
        *baseline_rows(found),
        against("rollout, fresh", found, bar=2.5, stretch=1.5, note=used(cpu)),
        against("rollout, fresh", found, percentile="p99", bar=4.0),
        *(faster("rollout, fresh", name, found, *bars) for name, bars in _FASTER.items() if name in found),
        against("rollout, fresh, back to back", found),
        against("rollout, fresh, command", found),
    ]


def measure_parked(bare: BareFork, count: int) -> list[Row]:
    """Each sandbox waits already; and execs in one that is kept."""
    with node() as (client, pid), cpu_watch((pid,)) as cpu, Sandbox("python", client=client) as sandbox:
        found = interleaved(
            {
                BARE: bare,
                "rollout, parked": timings(lambda: one(client), gap_s=_PARKING_S),
                "exec in a kept sandbox, code": timings(lambda: sandbox.exec(CODE)),
                "exec in a kept sandbox, command": timings(lambda: sandbox.exec(command="echo 499500")),
            },
            count=count,
        )
    return [
        against("rollout, parked", found, bar=1.25, stretch=0.8, note=used(cpu)),
        against("rollout, parked", found, percentile="p99"),
        against("exec in a kept sandbox, code", found),
        against("exec in a kept sandbox, command", found),
    ]


_FASTER = {COLD: (3.5, 6.0), BWRAP: (5.0, 8.0)}


def one(client: Client) -> None:
    """The measured thing."""
    result = rollout_once("python", code=CODE, client=client)
    assert result.stdout == EXPECTED, result


def one_command(client: Client) -> None:
    """The same through `sh -c`."""
    result = rollout_once("python", command="echo 499500", client=client)
    assert result.stdout == EXPECTED, result


def used(cpu: Cpu) -> str:
    """What else went on."""
    return f"others used {cpu.others:.2f} cores" + (f", {cpu.steal:.2f} stolen" if cpu.steal > 0.01 else "")


def baseline_rows(found: Mapping[str, Latency]) -> list[Row]:
    """What everything is compared with."""
    rows = [
        Row(name=f"baseline: {name}, p50", value=found[name].p50, unit="ms")
        for name in (BARE, COLD, BWRAP)
        if name in found
    ]
    return [*rows, Row(name=f"baseline: {BARE}, p99", value=found[BARE].p99, unit="ms")]


def against(
    name: str,
    found: Mapping[str, Latency],
    *,
    percentile: str = "p50",
    bar: float | None = None,
    stretch: float | None = None,
    note: str = "",
) -> Row:
    """A latency in units of the bare fork's middle."""
    value: float = getattr(found[name], percentile)
    return Row(
        name=f"{name}, {percentile}",
        value=value,
        unit="ms",
        ratio=value / found[BARE].p50,
        of="bare fork",
        bar=bar,
        stretch=stretch,
        note=note,
    )


def faster(name: str, than: str, found: Mapping[str, Latency], bar: float, stretch: float) -> Row:
    """How many times faster than a cold start."""
    return Row(
        name=f"{name}, against {than}",
        value=found[name].p50,
        unit="ms",
        ratio=found[than].p50 / found[name].p50,
        of="faster",
        bar=bar,
        stretch=stretch,
        higher_is_better=True,
    )
