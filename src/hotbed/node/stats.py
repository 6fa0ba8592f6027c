"""What the node counts: how many, and how long. Read as one plain object."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from typing import Any, Protocol

BOUNDS_MS = (0.5, 1, 1.5, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200, 500, 1000, 5000, 30_000)


class Histogram:
    """Durations in fixed buckets. Bucket i counts values up to BOUNDS_MS[i]; the last one has no bound."""

    __slots__ = ("counts", "total", "sum_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.total = 0
        self.sum_ms = 0.0

    def add(self, value_ms: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS_MS, value_ms)] += 1
        self.total += 1
        self.sum_ms += value_ms

    def snapshot(self) -> dict[str, Any]:
        """Plain data."""
        return {"bounds_ms": list(BOUNDS_MS), "counts": list(self.counts), "count": self.total, "sum_ms": self.sum_ms}


class Heard(Protocol):
    """Somebody who is told of each request when it is over."""

    def __call__(self, *, route: str, status: int, begun_ns: int, tenant: str) -> None:
        """In the request's own task."""
        ...


class Stats:
    """Counters and histograms of one node since it started."""

    def __init__(self) -> None:
        self.begun_s = time.monotonic()
        self.heard: Heard | None = None
        self.counts: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.fork_ms = Histogram()
        self.exec_ms = Histogram()
        self.grade_ms = Histogram()
        self.queue_ms = Histogram()
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self.rollout_ms = Histogram()

    def snapshot(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "counts": dict(self.counts),
            "outcomes": dict(self.outcomes),
            "fork_ms": self.fork_ms.snapshot(),
            "exec_ms": self.exec_ms.snapshot(),
            "grade_ms": self.grade_ms.snapshot(),
            "queue_ms": self.queue_ms.snapshot(),
            "requests": {f"{route} {status}": count for (route, status), count in self.requests.items()},
            "rollout_ms": self.rollout_ms.snapshot(),
        }
