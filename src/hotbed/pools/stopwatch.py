"""How long a pool's client is held up by its environments: what its node cannot see, as lanes pass it by.

A context manager around each wait. Waits that follow each other closely are one span; about once a second the spans so
far are told to whoever keeps the workers, in one small message that nobody answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

EVERY_S = 1.0
NEAR_S = 0.05

#: Seconds since it began and since it ended, seconds waited in it, and how often.
Span = tuple[float, float, float, int]


class Stopwatch:
    """One client's. A wait within a wait is part of it. Use it from one thread at a time."""

    def __init__(self, tell: Callable[[Sequence[Span]], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._depth = 0
        self._since_s = 0.0
        self._told_s = clock()
        self._spans: list[list[float]] = []  # begun, ended, waited, how often

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._since_s = self._clock()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        now, since_s = self._clock(), self._since_s
        last = self._spans[-1] if self._spans else None
        if last is not None and since_s - last[1] < NEAR_S:
            last[1], last[2], last[3] = now, last[2] + now - since_s, last[3] + 1
        else:
            self._spans.append([since_s, now, now - since_s, 1])
        if now - self._told_s >= EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Tell what has not been told yet."""
        now, spans = self._clock(), self._spans
        self._told_s, self._spans = now, []
        if spans:
            self._tell([(now - begun, now - ended, waited, int(count)) for begun, ended, waited, count in spans])
