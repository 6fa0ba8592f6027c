"""How many sandboxes of a template are worth keeping ready. Pure: time is told.

A template that is used keeps its baseline. One that has not been used for an hour keeps none, in steps on the way.
Who knows better says so: a hint of a width raises the number for an hour, up to a bound, until it is taken back.
"""

from __future__ import annotations

import math

FADES_S = 3600.0
STEPS = 4
MOST = 64


class Demand:
    """The demand for one template's spares."""

    def __init__(self, baseline: int, now_s: float) -> None:
        self._baseline = baseline
        self._used_s = now_s
        self._width = 0
        self._hinted_s = now_s

    def used(self, now_s: float) -> None:
        """Somebody wanted one."""
        self._used_s = now_s

    def expect(self, width: int, now_s: float) -> None:
        """So many will be wanted at once; 0 takes it back."""
        self._width = width
        self._hinted_s = now_s

    def idle_s(self, now_s: float) -> float:
        """How long nobody wanted one or said that they would."""
        return now_s - max(self._used_s, self._hinted_s if self._width else self._used_s)

    def wanted(self, now_s: float) -> int:
        """How many to keep ready."""
        hinted = min(self._width, MOST) if now_s - self._hinted_s < FADES_S else 0
        left = 1 - (now_s - self._used_s) / FADES_S
        if self._baseline == 0:
            return 0
        return max(hinted, math.ceil(self._baseline * math.ceil(max(0.0, left) * STEPS) / STEPS))
