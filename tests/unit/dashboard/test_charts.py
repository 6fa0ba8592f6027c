"""Plots as geometry."""

from __future__ import annotations

import pytest

from hotbed.dashboard.charts import BINS, along, histogram, spread, stacked


def test_few_rewards_have_a_bar_each() -> None:
    """A group of zeros and ones is two bars, the taller as high as the box."""
    low, high = histogram({1.0: 3, 0.0: 12}, width=100, height=24)

    assert (low.label, low.count, low.height, low.y) == ("0", 12, 24, 0)
    assert (high.label, high.count, high.height, high.y) == ("1", 3, 6, 18)
    assert low.x < high.x < 100


def test_many_rewards_are_binned_and_none_is_lost() -> None:
    """The largest belongs to the last bin."""
    rewards = {number / 64: 1 for number in range(65)}
    bins = spread(rewards)

    assert (len(bins), sum(count for _, count in bins)) == (BINS, 65)
    assert bins[0][0] == "0 to 0.1"


def test_nothing_is_no_bars() -> None:
    """A group without a single reward draws no histogram."""
    assert histogram({}, width=100, height=24) == []
    assert stacked([], ("a",), width=100, height=24) == []
    assert stacked([{"a": 0.0}], ("a",), width=100, height=24) == []
    assert along({"a": 0.0}, ("a",), width=100, height=24) == []


def test_rows_are_filled_from_below() -> None:
    """Heights are in proportion to the largest sum, and parts lie on each other without a gap."""
    bars = stacked([{"a": 1.0, "b": 3.0}, {"b": 2.0}], ("a", "b"), width=200, height=100)

    assert [(bar.part, bar.y, bar.height) for bar in bars] == [("a", 75, 25), ("b", 0, 75), ("b", 50, 50)]
    assert bars[0].x == bars[1].x < bars[2].x


def test_one_bar_lies_along_its_parts() -> None:
    """Their widths add up to the whole."""
    bars = along({"fork": 1.0, "exec": 2.0, "rest": 0.0}, ("fork", "exec", "rest"), width=300, height=10)

    assert [(bar.part, bar.x, bar.width) for bar in bars] == [("fork", 0, 100), ("exec", 100, 200)]
    assert sum(bar.width for bar in bars) == pytest.approx(300)
