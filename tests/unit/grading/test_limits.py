"""Limits of a candidate."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidSpec
from hotbed.grading.limits import CallLimits, limits_of


@pytest.mark.parametrize(
    ("value", "field"),
    [({"cpu_s": 0}, "cpu_s"), ({"memory_mib": -1}, "memory_mib"), ({"wall_s": 1}, "wall_s"), ({"time": 1}, "time")],
)
def test_a_mistake_names_its_field(value: dict[str, Any], field: str) -> None:
    """A wall limit below the CPU limit would make a loaded machine the judge."""
    with pytest.raises(InvalidSpec, match=f"limits.{field}"):
        limits_of(value)


def test_the_wall_limit_is_a_backstop() -> None:
    """Several times the CPU limit unless given."""
    assert CallLimits(cpu_s=2).call_wall_s == 7 and CallLimits(cpu_s=2, wall_s=3).call_wall_s == 3
    assert CallLimits(cpu_s=100).candidate_wall_s == 1204 and CallLimits(total_s=5).candidate_wall_s == 5
    assert limits_of(CallLimits(cpu_s=3).to_wire()) == CallLimits(cpu_s=3)
