"""How many sandboxes are kept ready."""

from __future__ import annotations

from hotbed.runtime.demand import FADES_S, MOST, Demand


def test_what_nobody_uses_fades_in_an_hour() -> None:
    """From what it began with, in steps, to none."""
    demand = Demand(8, 0.0)

    seen = [demand.wanted(part * FADES_S / 8) for part in range(9)]

    assert seen == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_a_burst_is_remembered_as_high_as_it_was() -> None:
    """The next one is served from what is parked."""
    demand = Demand(2, 0.0)
    for number in range(20):
        demand.used(10.0 + number / 1e4)

    assert 20 <= demand.wanted(11.0) <= 22
    assert 10 <= demand.wanted(10.0 + FADES_S / 2) <= 12


def test_a_steady_stream_keeps_as_many_as_come_while_one_is_made() -> None:
    """By its rate, not by how many there were in all."""
    slow, fast = Demand(1, 0.0), Demand(1, 0.0)
    for second in range(600):
        slow.used(float(second))
        for part in range(40):
            fast.used(second + part / 40)

    assert slow.wanted(600.0) == 3
    assert 8 <= fast.wanted(600.0) <= 14


def test_a_lower_height_outlives_a_higher_one_that_is_older() -> None:
    """Both are remembered; neither hides the other."""
    demand = Demand(1, 0.0)
    for _ in range(40):
        demand.used(0.0)
    for _ in range(5):
        demand.used(FADES_S - 60)

    assert demand.wanted(FADES_S - 60) == 7
    assert demand.wanted(FADES_S + 60) == 7
    assert demand.wanted(2 * FADES_S) == 0


def test_no_burst_is_kept_for_beyond_a_bound() -> None:
    """Nor does what is remembered grow without one."""
    demand = Demand(8, 0.0)
    for _ in range(1000):
        demand.used(1.0)

    assert demand.wanted(1.0) == MOST
    assert len(demand._heights) == 1


def test_a_hint_raises_it_for_an_hour() -> None:
    """Within a bound, until it is taken back, and what was seen with it."""
    demand = Demand(8, 0.0)
    demand.expect(20, 10.0)
    assert (demand.wanted(20.0), demand.hinted(20.0)) == (20, 20)
    demand.expect(10_000, 10.0)
    assert (demand.wanted(20.0), demand.idle_s(20.0)) == (MOST, 10.0)
    assert (demand.wanted(10.0 + FADES_S), demand.hinted(10.0 + FADES_S)) == (0, 0)
    demand.expect(20, 0.0)
    demand.expect(0, 1.0)
    assert demand.wanted(1.0) == 0
    demand.used(2.0)
    assert demand.wanted(2.0) == 3


def test_a_template_that_parks_nothing_never_does() -> None:
    """Whatever is expected of it."""
    demand = Demand(0, 0.0)
    demand.expect(5, 0.0)
    demand.used(0.0)

    assert demand.wanted(0.0) == 0
