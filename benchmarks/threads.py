"""Throughput: many client threads, on one core and on all of them; and whether anything is left afterwards."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.baselines import BareFork, settle
from benchmarks.lab import node
from benchmarks.measure import cpu_watch, percentiles
from benchmarks.rollouts import one, used
from benchmarks.rows import Row
from hotbed import Client, Error, Sandbox
from hotbed.cli.leavings import look, wait_same

ALIVE = 1000
_BARE_COUNT = 100
_SUSTAINED = 150 * 0.0015


def run(*, count: int) -> list[Row]:
    """One round."""
    seconds = max(1.0, count / 100)
    before = look()
    cores = len(os.sched_getaffinity(0))
    rows = []
    with node() as (client, pid), BareFork() as bare:
        for threads in (1, 8, 64):
            rows.append(many_threads(client, pid, threads, seconds, bare))
        rows.append(sustained(rows[-1], cores))
    settle()
    with node(cores=1) as (client, pid), BareFork() as bare:
        pinned = many_threads(client, pid, 16, seconds, bare)
    rows.append(sustained(pinned, 1, name="rollouts per second with sandboxes on one core"))
    settle()
    with node(max_sandboxes=ALIVE + 64) as (client, pid):
        rows += alive_at_once(client)
    left = wait_same(before, timeout_s=15)
    rows.append(Row(name="left over after all of it", value=sum(left.values()), unit="things", bar=0, note=str(left)))
    return rows


def many_threads(client: Client, pid: int, threads: int, seconds: float, bare: BareFork) -> Row:
    """Rollouts per second in units of what one bare fork after the other would give, measured before and after."""
    before = bare(_BARE_COUNT)
    with cpu_watch((pid,)) as cpu:
        rate = rate_of(lambda: one(client), threads, seconds)
    each = 1e3 * cpu.ours / rate
    bare_ms = percentiles(before + bare(_BARE_COUNT)).p50
    return Row(
        name=f"rollouts per second, {threads} threads",
        value=rate,
        unit="/s",
        ratio=rate * bare_ms / 1e3,
        of="1/bare fork",
        bar=0.6 if threads == 64 else None,
        stretch=1.0 if threads == 64 else None,
        higher_is_better=True,
        note=f"{each:.2f} ms of CPU each, client included; {used(cpu)}",
    )


def rate_of(action: Callable[[], object], threads: int, seconds: float) -> float:
    """How often per second, from so many threads."""
    counts = [0] * threads
    begin = threading.Barrier(threads + 1)
    stop = threading.Event()

    def work(index: int) -> None:
        action()
        begin.wait()
        while not stop.is_set():
            action()
            counts[index] += 1

    with ThreadPoolExecutor(threads) as pool:
        working = [pool.submit(work, index) for index in range(threads)]
        begin.wait()
        begun = time.perf_counter()
        time.sleep(seconds)
        stop.set()
        done, spent = sum(counts), time.perf_counter() - begun
        for future in working:
            future.result()
    return done / spent


def sustained(row: Row, cores: int, name: str = "rollouts per second and core") -> Row:
    """The rate over cores, against the same fork: see decision 14 on why 150 a second is 0.225 of it."""
    assert row.ratio is not None
    note = f"150 /s where a bare fork takes 1.5 ms; {row.note}"
    ratio = row.ratio / cores
    return Row(
        name=name,
        value=row.value / cores,
        unit="/s",
        ratio=ratio,
        of="1/bare fork",
        bar=_SUSTAINED,
        higher_is_better=True,
        note=note,
    )


def start(sandbox: Sandbox) -> str | None:
    """Start it; what kept it from starting."""
    try:
        sandbox.start()
    except Error as error:
        return f"{type(error).__name__}: {error}"
    return None


def alive_at_once(client: Client) -> list[Row]:
    """Make many sandboxes, use each, end all."""
    sandboxes = [Sandbox("python", client=client) for _ in range(ALIVE)]
    with ThreadPoolExecutor(32) as pool:
        begun = time.perf_counter()
        failures = [failure for failure in pool.map(start, sandboxes) if failure]
        made = time.perf_counter() - begun
        alive = len(client.sandboxes())
        started = [sandbox for sandbox in sandboxes if sandbox.session_id]
        answers = sum(pool.map(lambda sandbox: sandbox.exec("print(1)").ok, started))
        begun = time.perf_counter()
        list(pool.map(Sandbox.close, sandboxes))
        ended = time.perf_counter() - begun
    note = f"made in {made:.2f} s, ended in {ended:.2f} s{f'; {failures[0]}' if failures else ''}"
    return [
        Row(name="alive at once", value=alive, unit="sandboxes", bar=ALIVE, higher_is_better=True, note=note),
        Row(name="of which answered", value=answers, unit="sandboxes", bar=ALIVE, higher_is_better=True),
    ]
