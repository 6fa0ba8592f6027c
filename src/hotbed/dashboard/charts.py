"""Plots as plain geometry: bars in a box of given size, for the templates to draw as SVG. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BINS = 10
FEW = 8  # so many different rewards have a bar each
LEAST_COLUMNS = 20  # fewer rows than that do not fill the box


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar. `x`, `y`, `width` and `height` are in the units of the drawing; `label` says what it counts."""

    x: float
    y: float
    width: float
    height: float
    label: str
    count: float
    part: str = ""


def histogram(rewards: Mapping[float, int], *, width: float, height: float) -> list[Bar]:
    """How often each reward was given: a bar for each where they are few, else equal bins over their range."""
    bins = spread(rewards)
    top = max((count for _, count in bins), default=0)
    if not top:
        return []
    step = width / len(bins)
    return [
        Bar(
            x=round(number * step, 2),
            y=round(height - height * count / top, 2),
            width=round(step * 0.86, 2),
            height=round(height * count / top, 2),
            label=label,
            count=count,
        )
        for number, (label, count) in enumerate(bins)
    ]


def spread(rewards: Mapping[float, int]) -> list[tuple[str, int]]:
    """Rewards and how many got each, lowest first."""
    if len(rewards) <= FEW:
        return [(f"{reward:g}", rewards[reward]) for reward in sorted(rewards)]
    low, high = min(rewards), max(rewards)
    size = (high - low) / BINS
    counts = [0] * BINS
    for reward, count in rewards.items():
        counts[min(BINS - 1, int((reward - low) / size))] += count
    return [(f"{low + n * size:.3g} to {low + (n + 1) * size:.3g}", count) for n, count in enumerate(counts)]


def stacked(rows: Sequence[Mapping[str, float]], parts: Sequence[str], *, width: float, height: float) -> list[Bar]:
    """Rows of seconds by part, side by side, each filled from below to the height of its sum."""
    top = max((sum(row.values()) for row in rows), default=0.0)
    if not top:
        return []
    step, bars = width / max(len(rows), LEAST_COLUMNS), list[Bar]()
    for number, row in enumerate(rows):
        floor = height
        for part in parts:
            tall = height * row.get(part, 0.0) / top
            floor -= tall
            if tall > 0:
                box = (round(number * step, 2), round(floor, 2), round(step * 0.86, 2), round(tall, 2))
                bars.append(_bar(box, part, row[part]))
    return bars


def along(values: Mapping[str, float], parts: Sequence[str], *, width: float, height: float) -> list[Bar]:
    """One bar lying down, divided among its parts."""
    whole = sum(values.get(part, 0.0) for part in parts)
    if whole <= 0:
        return []
    bars, at = list[Bar](), 0.0
    for part in parts:
        long = width * values.get(part, 0.0) / whole
        if long > 0:
            bars.append(_bar((round(at, 2), 0.0, round(long, 2), height), part, values[part]))
        at += long
    return bars


def _bar(box: tuple[float, float, float, float], part: str, count: float) -> Bar:
    x, y, width, height = box
    return Bar(x=x, y=y, width=width, height=height, label=part, count=count, part=part)
