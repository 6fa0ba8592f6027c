"""Parked sandboxes under a bursty trace: how often one is there, and what a request waits for it.

Bursts of a few requests at once, with pauses between them drawn from a fixed seed, as groups of a trainer come. The
baseline is the same trace when no spare fits (other limits), so that each request forks.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.measure import Latency, percentiles
from benchmarks.rows import Row
from hotbed import Client, connect, rollout_once

BURSTS = 60
LARGEST = 8
PAUSE_S = 0.15


def run(*, count: int) -> list[Row]:
    """One round."""
    with connect() as client, ThreadPoolExecutor(LARGEST) as threads:
        rollout_once("python", code="1", client=client)
        time.sleep(0.5)
        forked, _ = trace(client, threads, {"pids": 255})
        parked, hits = trace(client, threads, None)
    return [
        Row(name="forked for each, p50", value=forked.p50, unit="ms"),
        Row(name="forked for each, p99", value=forked.p99, unit="ms"),
        Row(name="parked where it is, p50", value=parked.p50, unit="ms", ratio=parked.p50 / forked.p50, of="forked"),
        Row(name="parked where it is, p99", value=parked.p99, unit="ms", ratio=parked.p99 / forked.p99, of="forked"),
        Row(name="warm hits", value=100 * hits, unit="%"),
    ]


def trace(client: Client, threads: ThreadPoolExecutor, limits: dict[str, float] | None) -> tuple[Latency, float]:
    """Latencies, and the share that a parked sandbox served."""
    draw = random.Random(7)
    taken: list[float] = []
    hits: list[bool] = []

    def one(_: int) -> None:
        begun = time.perf_counter()
        result = rollout_once("python", code="print(1)", limits=limits, client=client)
        taken.append(time.perf_counter() - begun)
        hits.append(result.warm_hit)

    for _ in range(BURSTS):
        list(threads.map(one, range(draw.randint(1, LARGEST))))
        time.sleep(draw.expovariate(1 / PAUSE_S))
    return percentiles(taken), sum(hits) / len(hits)
