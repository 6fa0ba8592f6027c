"""What is provably as it was in a fork that never runs."""

from __future__ import annotations

import mmap
import os

import pytest

from hotbed.runtime.livefork import maps, pages
from hotbed.runtime.livefork.runs import PAGE, both
from hotbed.runtime.livefork.witness import Witness, closed_to
from tests.unit.runtime.livefork.idling import forked


@pytest.mark.parametrize("places", [False, pages.places_are_visible()])
def test_only_what_has_changed_is_a_stranger(places: bool) -> None:
    """By place or by content: the same answer, but that content proves more."""
    memory = mmap.mmap(-1, 16 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = bytes([3]) * (16 * PAGE)
    start = pages.address_of(memory)
    whole = [(start, start + 16 * PAGE)]
    pid, end = forked()
    try:
        witness = Witness(pid, trust_places=places)
        memory[5 * PAGE] = 4
        ours = [one for one in maps.private(maps.read(os.getpid())) if one.start <= start < one.end]
        counted = witness.census(os.getpid(), ours)
        witness.close()
    finally:
        os.close(end)
        os.waitpid(pid, 0)

    assert counted.strangers is not None
    assert both(counted.own, whole) == whole
    assert both(counted.strangers, whole) == [(start + 5 * PAGE, start + 6 * PAGE)]


def test_pages_without_a_right_are_closed() -> None:
    """Wherever the letter is missing."""
    mappings = [maps.Mapping(0, 4, "r--", False, 0, 0, "", ""), maps.Mapping(4, 8, "rw-", False, 0, 0, "", "")]

    assert closed_to(mappings, "w") == [(0, 4)]
    assert closed_to(mappings, "r") == []
