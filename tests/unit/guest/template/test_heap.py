from __future__ import annotations

import os
import sys

import pytest

from hotbed.guest.template import heap


def in_fork(check: str) -> int:
    """The status of a child that evaluates `check` in this module: it must not fill the test run's own heap."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = int(not eval(check, globals()))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lies_together(size: int) -> bool:
    """Whether new blocks of a size follow each other, but for the few that filling itself has let go of."""
    heap.settle()  # with no collection after it, which would make new gaps
    make = heap._maker(size)
    blocks = [make() for _ in range(24)]
    return sum(id(later) - id(block) == size for block, later in zip(blocks, blocks[1:], strict=False)) > 12


def lies_together_in_a_strewn_heap() -> bool:
    """The same where every second of many blocks has been let go of, as after a large import."""
    make = heap._maker(128)
    strewn = [make() for _ in range(40_000)]
    del strewn[::2]
    return lies_together(128)


@pytest.mark.parametrize("size", [16, 32, 48, 64, 256, 512])
def test_each_kind_of_filler_takes_the_block_it_is_for(size: int) -> None:
    made = heap._maker(size)()

    assert (sys.getsizeof(made) + 15) // 16 * 16 == size


@pytest.mark.parametrize("size", [16, 32, 48, 128, 512])
def test_objects_made_after_filling_lie_one_after_the_other(size: int) -> None:
    assert in_fork(f"lies_together({size})") == 0


def test_more_than_a_megabyte_of_gaps_is_filled() -> None:
    assert in_fork("lies_together_in_a_strewn_heap()") == 0


def test_a_second_filling_finds_less_than_a_pool_of_each_size() -> None:
    assert in_fork("heap.fill_gaps() >= 0 and heap.fill_gaps() <= 32 * heap._POOL") == 0


def test_a_settled_heap_is_frozen_and_not_collected() -> None:
    assert in_fork("heap.settle() is None and heap.gc.get_freeze_count() > 0 and not heap.gc.isenabled()") == 0


def test_an_allocator_without_pools_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_maker", lambda size: lambda: None)
    monkeypatch.setattr(heap, "_MOST_BYTES", 1 << 12)

    assert heap.fill_gaps() == 0
