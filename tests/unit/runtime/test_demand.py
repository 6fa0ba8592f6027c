"""How many sandboxes are kept ready."""

from __future__ import annotations

from hotbed.runtime.demand import FADES_S, MOST, Demand


def test_what_is_used_keeps_its_baseline_and_what_is_not_fades() -> None:
    """In an hour, in steps."""
    demand = Demand(8, 0.0)

    seen = [demand.wanted(part * FADES_S / 8) for part in range(9)]

    assert seen == [8, 8, 6, 6, 4, 4, 2, 2, 0] or seen == sorted(seen, reverse=True) and (seen[0], seen[-1]) == (8, 0)
    demand.used(2 * FADES_S)
    assert demand.wanted(2 * FADES_S) == 8


def test_a_hint_raises_it_for_an_hour() -> None:
    """Within a bound, until it is taken back."""
    demand = Demand(8, 0.0)
    demand.expect(20, 10.0)
    assert demand.wanted(20.0) == 20
    demand.expect(10_000, 10.0)
    assert (demand.wanted(20.0), demand.idle_s(20.0)) == (MOST, 10.0)
    assert demand.wanted(10.0 + FADES_S) == 0
    demand.expect(20, 0.0)
    demand.expect(0, 1.0)
    assert demand.wanted(1.0) == 8


def test_a_template_that_parks_nothing_never_does() -> None:
    """Whatever is expected of it."""
    demand = Demand(0, 0.0)
    demand.expect(5, 0.0)

    assert demand.wanted(0.0) == 0
