"""Counting a process's pages, and moving them."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from hotbed.runtime.livefork import maps, pages
from hotbed.runtime.livefork.pages import Pagemap
from hotbed.runtime.livefork.runs import PAGE
from tests.unit.runtime.livefork.idling import forked

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def test_a_fork_shares_what_neither_has_written() -> None:
    """Seen by place, where places are visible; by being shared, everywhere."""
    memory = mmap.mmap(-1, 8 * PAGE, PRIVATE)
    memory[:] = bytes([1]) * (8 * PAGE)
    start = pages.address_of(memory)
    pid, end = forked()
    memory[3 * PAGE] = 2
    try:
        ours = [one for one in maps.read(os.getpid()) if one.start <= start < one.end]
        with Pagemap(os.getpid()) as mine, Pagemap(pid) as theirs:
            counted = pages.census(mine, ours, theirs if pages.places_are_visible() else None)
    finally:
        os.close(end)
        os.waitpid(pid, 0)

    changed = (start + 3 * PAGE, start + 4 * PAGE)
    assert any(one <= start and start + 8 * PAGE <= two for one, two in counted.own)
    assert all(two <= changed[0] or one >= changed[1] for one, two in counted.shared)
    if counted.strangers is not None:
        inside = [(max(one, start), min(two, start + 8 * PAGE)) for one, two in counted.strangers]
        assert [run for run in inside if run[0] < run[1]] == [changed]


def test_untouched_pages_are_not_counted() -> None:
    """A mapping that nobody has written holds nothing."""
    memory = mmap.mmap(-1, 64 * PAGE, PRIVATE)
    start = pages.address_of(memory)
    memory[9 * PAGE] = 1
    probe = maps.Mapping(start, start + 64 * PAGE, "rw-", False, 0, 0, "", "")

    with Pagemap(os.getpid()) as mine:
        assert pages.census(mine, [probe], None).own == [(start + 9 * PAGE, start + 10 * PAGE)]


@pytest.mark.parametrize("count", [1, 3000])
def test_many_parts_move_in_order(count: int) -> None:
    """More than one call takes."""
    there, here = (mmap.mmap(-1, count * 2 * PAGE, PRIVATE) for _ in range(2))
    for page in range(count):
        there[page * 2 * PAGE : page * 2 * PAGE + 4] = page.to_bytes(4, "big")
    start, target = pages.address_of(there), pages.address_of(here)
    parts = [((start + p * 2 * PAGE, start + p * 2 * PAGE + PAGE), target + p * PAGE) for p in range(count)]

    pages.fetch(os.getpid(), parts)

    assert [int.from_bytes(here[p * PAGE : p * PAGE + 4], "big") for p in range(count)] == list(range(count))
    ctypes.memset(target, 7, PAGE)
    pages.store(os.getpid(), parts[:1])
    assert there[0] == 7


def test_what_is_not_there_is_an_error() -> None:
    """No silent hole."""
    with pytest.raises(OSError):
        pages.fetch(os.getpid(), [((PAGE, 2 * PAGE), pages.address_of(mmap.mmap(-1, PAGE, PRIVATE)))])


def test_a_census_without_what_was_mapped_anew() -> None:
    """Pages that are gone are nobody's any more, so nothing may be concluded from what they were."""
    counted = pages.Census([(0, 4 * PAGE)], [(PAGE, 3 * PAGE)], [(3 * PAGE, 4 * PAGE)])

    assert counted.without([(2 * PAGE, 4 * PAGE)]) == pages.Census([(0, 2 * PAGE)], [(PAGE, 2 * PAGE)], [])
    assert counted.without([]) is counted
