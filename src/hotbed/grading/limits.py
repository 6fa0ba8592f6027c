"""What one candidate may use while it is graded."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from hotbed.errors import InvalidSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits per call and per candidate.

    `cpu_s` is CPU time per call (or per run of a program): a loaded machine does not make an honest program time out.
    `wall_s` is the backstop against sleeping, several times that; `total_s` bounds the whole candidate.
    """

    cpu_s: float = 10.0
    wall_s: float | None = None
    total_s: float | None = None
    memory_mib: int = 1024
    reply_bytes: int = 16 << 20
    output_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.name in ("wall_s", "total_s"):
                continue
            if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
                raise InvalidSpec(f"limits.{item.name} must be a number above 0, not {value!r}")
        if self.wall_s is not None and self.wall_s < self.cpu_s:
            raise InvalidSpec(
                f"limits.wall_s ({self.wall_s}) is below limits.cpu_s ({self.cpu_s})",
                hint="wall_s is the backstop; leave it out for three times cpu_s",
            )

    @property
    def call_wall_s(self) -> float:
        """Wall time per call."""
        return 3 * self.cpu_s + 1 if self.wall_s is None else self.wall_s

    @property
    def candidate_wall_s(self) -> float:
        """Wall time for one candidate, all its calls together."""
        return max(60.0, 4 * self.call_wall_s) if self.total_s is None else self.total_s

    def to_wire(self) -> dict[str, Any]:
        """The JSON object, what is left to its default left out."""
        default = CallLimits()
        return {name: value for name, value in asdict(self).items() if value != getattr(default, name)}


def limits_of(value: CallLimits | dict[str, Any]) -> CallLimits:
    """Limits as users write them: an object, or the dataclass."""
    if isinstance(value, CallLimits):
        return value
    known = {item.name for item in fields(CallLimits)}
    unknown = sorted(set(value) - known)
    if unknown:
        raise InvalidSpec(f"limits.{unknown[0]} is not known", hint=f"known: {', '.join(sorted(known))}")
    return CallLimits(**value)
