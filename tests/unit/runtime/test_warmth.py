"""Figures of warmth add up."""

from __future__ import annotations

from hotbed.runtime.warmth import Warmth, sum_of


def test_a_name_has_what_its_templates_have() -> None:
    """One with guest programs and one without."""
    assert sum_of([Warmth(parked=2, kept=3, forks=5, hits=4), Warmth(frozen=1, forks=1)]) == Warmth(
        parked=2, frozen=1, kept=3, forks=6, hits=4
    )
    assert sum_of([]) == Warmth()
