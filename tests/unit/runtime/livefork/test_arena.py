"""Memory that is used again."""

from __future__ import annotations

from hotbed.runtime.livefork.arena import Arena
from hotbed.runtime.livefork.runs import PAGE


def test_a_map_that_fits_is_used_again() -> None:
    """Not one that is much too large."""
    arena = Arena()
    small, large = arena.take(PAGE), arena.take(64 << 20)
    arena.give(small)
    arena.give(large)

    assert arena.take(PAGE) is small
    assert arena.take(40 << 20) is large
    arena.give(large)
    assert arena.take(2 << 20) is not large


def test_no_more_is_kept_than_allowed() -> None:
    """The smallest go first."""
    arena = Arena(3 << 20)
    one, two = arena.take(1 << 20), arena.take(3 << 20)
    arena.give(one)
    arena.give(two)

    assert one.closed
    assert arena.take(3 << 20) is two
