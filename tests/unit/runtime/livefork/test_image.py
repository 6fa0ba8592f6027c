"""Pages kept."""

from __future__ import annotations

import mmap
import os

import pytest

from hotbed.runtime.livefork import pages
from hotbed.runtime.livefork.image import Image
from hotbed.runtime.livefork.runs import PAGE, Run

COUNT = 40


@pytest.fixture
def memory() -> mmap.mmap:
    """Pages that each say which they are."""
    memory = mmap.mmap(-1, COUNT * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(COUNT):
        memory[page * PAGE] = page + 1
    return memory


def runs_of(memory: mmap.mmap, *pairs: Run) -> list[Run]:
    """Runs of its pages by number."""
    start = pages.address_of(memory)
    return [(start + one * PAGE, start + two * PAGE) for one, two in pairs]


@pytest.mark.parametrize("closed", [False, True])
def test_an_image_comes_back_as_it_was_taken(memory: mmap.mmap, closed: bool) -> None:
    """Whichever way its pages travel."""
    runs = runs_of(memory, (0, 3), (10, 11), (20, 40))
    image = Image.of(os.getpid(), runs, runs if closed else [])
    memory[:] = bytes(COUNT * PAGE)

    image.store(os.getpid(), runs_of(memory, (1, 2), (10, 11), (39, 40)), [])
    image.close()

    assert [page for page in range(COUNT) if memory[page * PAGE]] == [1, 10, 39]
    assert [memory[page * PAGE] for page in (1, 10, 39)] == [2, 11, 40]


def test_pages_that_differ_are_found_singly(memory: mmap.mmap) -> None:
    """In images that are cut otherwise."""
    whole = Image.of(os.getpid(), runs_of(memory, (0, COUNT)), [])
    memory[17 * PAGE + 4095] = 1
    parts = Image.of(os.getpid(), runs_of(memory, (0, 5), (15, 30)), [])

    assert parts.unlike(whole, runs_of(memory, (0, 5), (15, 30))) == runs_of(memory, (17, 18))
    assert parts.size == len(parts.bytes()) == 20 * PAGE
    whole.close()
    parts.close()
