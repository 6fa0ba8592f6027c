"""What the node counts."""

from __future__ import annotations

from hotbed.node.stats import BOUNDS_MS, Histogram, Stats


def test_a_duration_is_counted_in_the_first_bucket_that_holds_it() -> None:
    """A bound belongs to its own bucket; beyond the last one there is one more."""
    histogram = Histogram()
    for value in (0.1, 0.5, 0.6, 10**9):
        histogram.add(value)

    snapshot = histogram.snapshot()

    assert snapshot["counts"][:2] == [2, 1]
    assert snapshot["counts"][-1] == 1
    assert len(snapshot["counts"]) == len(BOUNDS_MS) + 1
    assert snapshot["count"] == 4


def test_a_snapshot_is_plain_data_of_its_own() -> None:
    """It goes to JSON while the node goes on counting."""
    stats = Stats()
    snapshot = stats.snapshot()
    stats.counts["forks"] += 1

    assert snapshot["counts"] == {}
    assert stats.snapshot()["counts"] == {"forks": 1}
