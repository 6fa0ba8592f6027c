"""Samples of the node's counters."""

from __future__ import annotations

import asyncio

import pytest

from hotbed.dashboard import history
from hotbed.dashboard.history import MINUTE, History, latest, percentile
from hotbed.node.stats import BOUNDS_MS, Histogram
from tests.unit.node.nodes import running_node


class Clock:
    """Time as a test tells it."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_sample_tells_what_happened_since_the_one_before() -> None:
    """Rates and percentiles of the last two seconds, not of all time."""

    async def scenario() -> None:
        clock = Clock()
        async with running_node() as node:
            kept = History(node, clock=clock)
            for _ in range(20):
                node.stats.rollout_ms.add(4.0)
            clock.now_s += 2
            kept.sample()
            clock.now_s += 2
            kept.sample()
        first, second = kept.samples("15m")

        assert (first["rollouts"], second["rollouts"]) == (10.0, 0.0)
        assert first["rollout_ms_p50"] == pytest.approx(4.0)
        assert second["rollout_ms_p50"] is None
        assert kept.columns("15m")["t"] == [1002.0, 1004.0]
        assert latest(kept.samples("15m")) == second
        assert kept.columns("24h")["rollouts"] == []

    asyncio.run(scenario())


def test_a_day_is_kept_in_minutes_and_memory_is_bounded() -> None:
    """A minute's rate is of the whole minute."""

    async def scenario() -> None:
        clock = Clock()
        async with running_node() as node:
            kept = History(node, clock=clock)
            for number in range(600):
                if number < MINUTE:
                    node.stats.exec_ms.add(1.0)
                clock.now_s += 2
                kept.sample()

        assert len(kept.samples("15m")) == 450
        assert [row["execs"] for row in kept.samples("24h")][:2] == [0.5, 0.0]
        assert len(kept.samples("24h")) == 20

    asyncio.run(scenario())


def test_it_samples_by_itself_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """And stopping twice is no error."""

    async def scenario() -> None:
        async with running_node() as node:
            kept = History(node)
            kept.start()
            while not kept.samples("15m"):
                await asyncio.sleep(0.001)
            kept.stop()
            kept.stop()
            count = len(kept.samples("15m"))
            await asyncio.sleep(0.01)
            assert len(kept.samples("15m")) == count

    monkeypatch.setattr(history, "EVERY_S", 0.001)
    asyncio.run(scenario())


def test_a_percentile_lies_in_its_bucket() -> None:
    """Interpolated; beyond the last bound, the last bound is all that is known."""
    histogram = Histogram()
    for value in [4.0] * 99 + [90_000.0]:
        histogram.add(value)
    counts = histogram.counts

    assert 3 < (percentile(counts, 0.5) or 0) < 5
    assert percentile(counts, 1.0) == BOUNDS_MS[-1]
    assert percentile([0] * len(counts), 0.5) is None
