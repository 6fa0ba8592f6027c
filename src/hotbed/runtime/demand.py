"""How many sandboxes of a template are worth keeping ready. Pure: time is told.

What counts is how many came at a time. A count of the present moment, that drains within a quarter of a second, is as
high as the largest burst, and as high as a steady stream brings while one spare is made. The heights that it reached
are remembered, and each counts for less as it ages, and for nothing after an hour. Two come on top where anything
came: what was seen is a guess. Who knows better says so: a hint of a width raises the number for an hour, up to a
bound; taken back, it takes along what was seen.
"""

from __future__ import annotations

import math

FADES_S = 3600.0
COLD_S = FADES_S / 4
MOST = 64
_DRAINS_S = 0.25
_ON_TOP = 2


class Demand:
    """The demand for one template's spares. It begins as if `baseline` had come at once."""

    def __init__(self, baseline: int, now_s: float, *, most: int = MOST) -> None:
        self._baseline = min(baseline, most)
        self._most = most
        self._level = 0.0
        self._used_s = now_s
        self._heights: list[tuple[int, float]] = [(self._baseline, now_s)]  # each lower and later than the one before
        self._width = 0
        self._hinted_s = now_s

    def used(self, now_s: float) -> None:
        """Somebody wanted one."""
        self._level = 1 + self._level * math.exp(min(0.0, self._used_s - now_s) / _DRAINS_S)
        self._used_s = now_s
        height = min(self._most, math.ceil(self._level - 0.1) + _ON_TOP)
        while self._heights and self._heights[-1][0] <= height:
            self._heights.pop()
        self._heights.append((height, now_s))

    def expect(self, width: int, now_s: float) -> None:
        """So many will be wanted at once; 0 takes it back, and forgets what was seen."""
        self._width = width
        self._hinted_s = now_s
        if width == 0:
            self._level, self._heights = 0.0, []

    def idle_s(self, now_s: float) -> float:
        """How long nobody wanted one or said that they would."""
        return now_s - max(self._used_s, self._hinted_s if self._width else self._used_s)

    def hinted(self, now_s: float) -> int:
        """How many are kept for a hint alone."""
        return min(self._width, self._most) if self._baseline and now_s - self._hinted_s < FADES_S else 0

    def wanted(self, now_s: float) -> int:
        """How many to keep ready."""
        if self._baseline == 0:
            return 0
        seen = (math.ceil(height * (1 - (now_s - at_s) / FADES_S)) for height, at_s in self._heights)
        return max(0, self.hinted(now_s), *seen)
