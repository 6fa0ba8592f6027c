"""What each tenant uses."""

from __future__ import annotations

from hotbed.node.meter import Meter


class Clock:
    """A clock that a test sets."""

    now = 7200.0 + 10

    def __call__(self) -> float:
        return self.now


def test_what_was_told_is_told_again_only_when_it_changed() -> None:
    """As sums: telling it twice is no harm, and telling it never again is none either."""
    meter = Meter(clock=Clock())
    meter.count("acme", "rollout")
    meter.moved("acme", received=5, sent=7)
    [row] = meter.take()
    assert (row.tenant, row.hour, row.rollouts, row.bytes_in, row.bytes_out) == ("acme", 7200, 1, 5, 7)
    assert meter.take() == []

    meter.count("acme", "rollout")

    assert [row.rollouts for row in meter.take()] == [2]


def test_each_hour_and_each_tenant_has_its_own() -> None:
    """A bill is of a span of time."""
    clock = Clock()
    meter = Meter(clock=clock)
    meter.count("acme", "create")
    meter.count("", "exec")
    clock.now += 3600
    meter.count("acme", "grade")
    meter.count("acme", "put")

    rows = {(row.tenant, row.hour): (row.sandboxes, row.execs, row.grades) for row in meter.take()}

    assert rows == {("acme", 7200): (1, 0, 0), ("", 7200): (0, 1, 0), ("acme", 10800): (0, 0, 1)}


def test_hours_long_over_are_forgotten() -> None:
    """A node runs for months."""
    clock = Clock()
    meter = Meter(clock=clock)
    for _ in range(10):
        meter.of("acme").cpu_s += 1
        meter.take()
        clock.now += 3600

    assert len(meter._hours) < 5
