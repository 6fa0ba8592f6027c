"""Mappings, and what has to change for one process's to become another's."""

from __future__ import annotations

import os

from hotbed.runtime.livefork import maps
from hotbed.runtime.livefork.maps import Mapping


def mapping(start: int, end: int, rights: str = "rw-", *, inode: int = 0, offset: int = 0, name: str = "") -> Mapping:
    """A private one."""
    return Mapping(start, end, rights, False, offset, inode, "00:00", name)


def test_this_process_has_a_heap_a_stack_and_libraries() -> None:
    """And nothing of the kernel's."""
    found = maps.read(os.getpid())

    assert {"[heap]", "[stack]"} <= {one.name for one in found}
    assert any(one.is_file and "x" in one.rights for one in found)
    assert not any(one.is_kernels for one in found)
    assert all(not one.shared for one in maps.private(found))


def test_equal_layouts_need_nothing_however_they_are_cut() -> None:
    """The kernel joins neighbours of one kind as it likes."""
    whole = [mapping(0, 8, name="[heap]"), mapping(10, 20, inode=5, offset=10)]
    cut = [
        mapping(0, 3),
        mapping(3, 8, name="[heap]"),
        mapping(10, 14, inode=5, offset=10),
        mapping(14, 20, inode=5, offset=14),
    ]

    assert maps.differences(whole, cut) == ([], [])


def test_what_is_missing_is_mapped_and_what_is_too_much_unmapped() -> None:
    """Piece by piece; a change of rights alone is told apart."""
    have = [mapping(0, 4), mapping(4, 8, "r--"), mapping(20, 30)]
    want = [mapping(0, 8), mapping(10, 12, inode=3), mapping(20, 24)]

    anew, gone = maps.differences(have, want)

    assert [(piece.start, piece.end, piece.only_rights) for piece in anew] == [(4, 8, True), (10, 12, False)]
    assert gone == [(24, 30)]


def test_another_part_of_a_file_is_another_kind() -> None:
    """Same place, same file, other offset."""
    anew, _ = maps.differences([mapping(0, 4, inode=3)], [mapping(0, 4, inode=3, offset=4)])

    assert [(piece.start, piece.end) for piece in anew] == [(0, 4)]
