"""Making a vessel into the process that a capture was taken of.

A vessel is a newborn program of a fresh sandbox: forked from the same template, with the rights of any other program
there, which are none; it has run only our code and is blocked in its first read. Everything done here could be done by
the program itself, so nothing has to be held back until the restored code runs: it never has more than its sandbox.

Order: manners and files first, which need a bit of the vessel's stack; then the layout of memory; then its pages; the
registers last.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass

from hotbed.runtime.livefork import facts, handles, maps, pages
from hotbed.runtime.livefork.capture import Capture, digests
from hotbed.runtime.livefork.facts import Manner
from hotbed.runtime.livefork.maps import Mapping, Piece
from hotbed.runtime.livefork.pages import Census
from hotbed.runtime.livefork.runs import PAGE, Run, both, minus, size, union
from hotbed.runtime.livefork.tracee import Lost, R, Tracee
from hotbed.runtime.livefork.witness import Witness, closed_to

_READ, _WRITE, _EXECUTE = 1, 2, 4
_SHARED, _PRIVATE, _FIXED, _ANONYMOUS, _NO_RESERVE = 1, 2, 0x10, 0x20, 0x4000
_DONTNEED = 4
_FEW_PAGES = 16
_NOWHERE = (1 << 64) - 1
_STACK = "[stack]"

_zeros = ctypes.create_string_buffer(_FEW_PAGES * PAGE)


class Mismatch(Exception):
    """A restored page is not what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newborn:
    """A vessel as it was while it waited, before anybody needed it: most of the work of a restore, done ahead.

    It holds for as long as the vessel has not run, which `holds` checks: the same process with the same registers, and
    no page fault since.
    """

    pid: int
    registers: list[int]
    faults: int
    mappings: list[Mapping]
    census: Census

    @classmethod
    def of(cls, vessel: Tracee, witness: Witness) -> Newborn:
        """Look at a stopped, idle vessel, and change nothing."""
        mappings = maps.read(vessel.pid)
        return cls(
            pid=vessel.pid,
            registers=list(vessel.registers),
            faults=facts.page_faults(vessel.pid),
            mappings=mappings,
            census=witness.census(vessel.pid, maps.private(mappings)),
        )

    def holds(self, vessel: Tracee) -> bool:
        """Whether this stopped vessel is still as it was."""
        same = self.pid == vessel.pid and self.registers == vessel.registers
        return same and self.faults == facts.page_faults(vessel.pid)


def load(vessel: Tracee, capture: Capture, known: Newborn | None = None, *, verify: bool = False) -> dict[str, int]:
    """Restore into a stopped, idle vessel for which `begin` has been called, and let it run. What it took.

    `known` is the vessel as it was before `begin`, if it was looked at.
    """
    about = facts.status(vessel.pid)
    _check(vessel, about, capture)
    manner = _manner_of(vessel, about, capture)
    facts.assume(vessel, manner, capture.manner)
    handles.open_again(vessel, capture.handles)
    for fd in capture.closed:
        vessel.call("close", fd)
    moved = _move_break(vessel, manner.break_at, capture.manner.break_at)
    laid = _lay_out(vessel, maps.read(vessel.pid) if known is None or moved else known.mappings, capture.mappings)
    if known is None:
        counted = capture.witness.census(vessel.pid, maps.private(capture.mappings))
    else:
        counted = known.census.without(union(moved, laid))
    written = _fill(vessel, capture, counted)
    if verify:
        _verify(vessel.pid, capture)
    vessel.set_vectors(capture.vectors)
    vessel.release(capture.registers, capture.mask)
    return {"written": written}


def _check(vessel: Tracee, about: dict[str, str], capture: Capture) -> None:
    if not facts.has_no_rights(about) or about["Threads"] != "1":
        raise Lost("the vessel has rights or threads that a newborn program has not")
    if facts.inside_number(about) != capture.number:
        raise Lost(f"the vessel is process {facts.inside_number(about)}, the original was {capture.number}")
    if vessel.registers[R["fs_base"]] != capture.registers[R["fs_base"]]:
        raise Lost("the vessel is not of the same template")


def _manner_of(vessel: Tracee, about: dict[str, str], capture: Capture) -> Manner:
    """How the vessel is set up. Its signals and alternate stack are those of every vessel of its template."""
    known = capture.witness.newborn
    if known is None or (known.caught, known.ignored) != facts.signals_of(about):
        known = capture.witness.newborn = facts.manner_of(vessel, about)
    return facts.manner_like(known, vessel.pid, about)


# --- layout ---


def _move_break(vessel: Tracee, now: int, wanted: int) -> list[Run]:
    """Give its heap the size of the original's; the addresses that this concerns."""
    if now == wanted:
        return []
    if vessel.call("brk", wanted) != wanted:
        raise Lost("its heap could not be given the size of the original's")
    low, high = min(now, wanted), max(now, wanted)
    return [(low - low % PAGE, high + -high % PAGE)]


def _lay_out(vessel: Tracee, have: list[Mapping], want: list[Mapping]) -> list[Run]:
    """Make its mappings those of the original; the addresses that show something else now."""
    anew, gone = maps.differences(have, want)
    for start, end in gone:
        vessel.call("munmap", start, end - start)
    files: dict[str, int] = {}
    for piece in anew:
        _map(vessel, piece, files)
    for fd in files.values():
        vessel.call("close", fd)
    left = maps.differences(maps.read(vessel.pid), want) if anew or gone else ([], [])
    if left != ([], []):
        raise Lost(f"its memory could not be laid out: {left!r:.300}")
    return union(gone, ((piece.start, piece.end) for piece in anew if not piece.only_rights))


def _map(vessel: Tracee, piece: Piece, files: dict[str, int]) -> None:
    """One piece. `files` are open in the vessel already; one that is needed joins them."""
    source, size = piece.source, piece.end - piece.start
    rights = _rights(source.rights)
    if source.name == _STACK and piece.instead is None:
        vessel.call("times", piece.start)  # the kernel grows a stack where it is touched
    elif piece.only_rights:
        vessel.call("mprotect", piece.start, size, rights)
    elif not source.is_file:
        flags = _PRIVATE | _FIXED | _ANONYMOUS | (0 if rights else _NO_RESERVE)
        vessel.call("mmap", piece.start, size, rights, flags, _NOWHERE, 0)
    else:
        if source.name not in files:
            files[source.name] = handles.open_path(vessel, source.name, os.O_CLOEXEC)
        kind = _SHARED if source.shared else _PRIVATE
        offset = source.offset + piece.start - source.start
        vessel.call("mmap", piece.start, size, rights, kind | _FIXED, files[source.name], offset)


def _rights(letters: str) -> int:
    return sum(bit for bit, letter in ((_READ, "r"), (_WRITE, "w"), (_EXECUTE, "x")) if letter in letters)


# --- pages ---


def _fill(vessel: Tracee, capture: Capture, counted: Census) -> int:
    """Make its pages, of which these are its own, those of the original; how many bytes were written."""
    pid, witness = vessel.pid, capture.witness
    private = maps.private(capture.mappings)
    unwritable = closed_to(private, "w")
    kept = capture.kept
    for run, mapping in _cut(minus(counted.own, capture.own), private):
        _empty(vessel, run, mapping)
    equal = minus(capture.own, kept)  # to the witness's, in the original
    stale = minus(equal, minus(counted.own, counted.strangers or []))  # and not, or not provably, in the vessel
    witness.image.store(pid, stale, unwritable)
    capture.image.store(pid, kept, unwritable)
    return size(stale) + size(kept)


def _cut(runs: list[Run], private: list[Mapping]) -> Iterator[tuple[Run, Mapping]]:
    index = 0
    for start, end in both(runs, [mapping.run for mapping in private]):
        while private[index].end <= start:
            index += 1
        yield (start, end), private[index]


def _empty(vessel: Tracee, run: Run, mapping: Mapping) -> None:
    """Make pages what they are before anyone has written them."""
    start, end = run
    few = end - start <= _FEW_PAGES * PAGE
    if few and not mapping.is_file and "w" in mapping.rights:
        pages.store(vessel.pid, [(run, ctypes.addressof(_zeros))])
    else:
        vessel.call("madvise", start, end - start, _DONTNEED)


def _verify(pid: int, capture: Capture) -> None:
    """Compare every page with what it was when the capture was taken."""
    found = dict(digests(pid, capture.mappings))
    wrong = [
        page for page in sorted(found.keys() | capture.digests.keys()) if found.get(page) != capture.digests.get(page)
    ]
    if wrong:
        raise Mismatch(f"{len(wrong)} of {len(found)} pages differ, the first at {wrong[0]:#x}")
