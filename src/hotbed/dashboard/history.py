"""How busy the node was: samples of its counters, for the plots.

Every two seconds the counters are read and their differences kept, as rates and as percentiles of the histograms'
growth: fifteen minutes of that, and a day of minutes. A percentile lies somewhere in its bucket; it is told by
interpolating in it. A timer of the event loop does it, a tenth of a millisecond each time, whoever looks.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotbed.node.node import Node
from hotbed.node.stats import BOUNDS_MS, Histogram

EVERY_S = 2.0
MINUTE = 30  # samples
SPANS: Mapping[str, str] = {"15m": "15 minutes", "24h": "24 hours"}
LATENCIES = ("queue_ms", "fork_ms", "exec_ms", "rollout_ms", "grade_ms")

Sample = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The counters at one moment."""

    at_s: float
    rollouts: int
    execs: int
    graded: int
    buckets: Mapping[str, tuple[int, ...]]


class History:
    """What the plots show. `start` once the event loop runs; `stop` is idempotent."""

    def __init__(self, node: Node, *, clock: Callable[[], float] = time.time) -> None:
        self._node = node
        self._clock = clock
        self._fine: deque[Sample] = deque(maxlen=450)
        self._coarse: deque[Sample] = deque(maxlen=1440)
        self._last = self._minute = self._read()
        self._taken = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to sample."""
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._tick)

    def stop(self) -> None:
        """Sample no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def samples(self, span: str) -> Sequence[Sample]:
        """The samples of a span, oldest first."""
        return tuple(self._coarse if span == "24h" else self._fine)

    def columns(self, span: str) -> dict[str, list[float | None]]:
        """The same as one list for each quantity, as a plot wants them."""
        rows = self.samples(span)
        names = self.take(self._last, self._last).keys()
        return {name: [row[name] for row in rows] for name in names}

    def sample(self) -> None:
        """Take one now."""
        reading = self._read()
        self._fine.append(self.take(self._last, reading))
        self._last = reading
        self._taken += 1
        if self._taken % MINUTE == 0:
            self._coarse.append(self.take(self._minute, reading))
            self._minute = reading

    def take(self, before: Reading, after: Reading) -> Sample:
        """What happened between two readings."""
        passed = max(after.at_s - before.at_s, 1e-6)
        admission = self._node.admission
        found: dict[str, float | None] = {
            "t": round(after.at_s, 3),
            "rollouts": _rate(after.rollouts - before.rollouts, passed),
            "execs": _rate(after.execs - before.execs, passed),
            "graded": _rate(after.graded - before.graded, passed),
            "running": admission.running,
            "queued": admission.queued,
        }
        for name in LATENCIES:
            grown = [now - then for now, then in zip(after.buckets[name], before.buckets[name], strict=True)]
            found[f"{name}_p50"] = percentile(grown, 0.50)
            found[f"{name}_p99"] = percentile(grown, 0.99)
        return found

    def _tick(self) -> None:
        self.sample()
        self.start()

    def _read(self) -> Reading:
        stats = self._node.stats
        histograms: dict[str, Histogram] = {name: getattr(stats, name) for name in LATENCIES}
        return Reading(
            at_s=self._clock(),
            rollouts=stats.rollout_ms.total,
            execs=stats.exec_ms.total,
            graded=self._node.graders.counts["graded"],
            buckets={name: tuple(histogram.counts) for name, histogram in histograms.items()},
        )


def percentile(counts: Sequence[int], part: float) -> float | None:
    """The value below which that part of a histogram lies, in milliseconds; None of nothing."""
    total = sum(counts)
    if not total:
        return None
    wanted, below = part * total, 0
    for bucket, count in enumerate(counts):
        if count and below + count >= wanted:
            low = BOUNDS_MS[bucket - 1] if bucket else 0.0
            high = BOUNDS_MS[bucket] if bucket < len(BOUNDS_MS) else BOUNDS_MS[-1]
            return round(low + (high - low) * (wanted - below) / count, 3)
        below += count
    return float(BOUNDS_MS[-1])


def latest(rows: Sequence[Sample]) -> dict[str, Any]:
    """The newest sample; nothing before the first."""
    return dict(rows[-1]) if rows else {}


def _rate(count: int, passed_s: float) -> float:
    return round(count / passed_s, 3)
