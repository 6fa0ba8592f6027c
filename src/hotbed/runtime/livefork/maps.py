"""A process's mappings, and the differences between those of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hotbed.runtime.livefork.runs import Run

_KERNELS = ("[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]")
_ANONYMOUS = ("", "[heap]", "[stack]")


class Mapping(NamedTuple):
    """One line of /proc/pid/maps (man 5 proc_pid_maps)."""

    start: int
    end: int
    rights: str  # r w x
    shared: bool
    offset: int
    inode: int
    device: str
    name: str

    @property
    def run(self) -> Run:
        """Its addresses."""
        return self.start, self.end

    @property
    def is_kernels(self) -> bool:
        """Whether the kernel put it there and shares it with everyone."""
        return self.name in _KERNELS

    @property
    def is_file(self) -> bool:
        """Whether it shows a file."""
        return self.inode != 0

    def kind(self) -> tuple[object, ...]:
        """What two mappings have in common if one may stand where the other stood, split or joined as they are."""
        if self.is_file:
            return self.rights, self.shared, self.device, self.inode, self.offset - self.start
        return self.rights, self.shared, "[stack]" if self.name == "[stack]" else ""


def read(pid: int) -> list[Mapping]:
    """All mappings but those of the kernel."""
    found = [_parse(line) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return [mapping for mapping in found if not mapping.is_kernels]


def _parse(line: str) -> Mapping:
    fields = line.split(None, 5)
    start, _, end = fields[0].partition("-")
    name = fields[5] if len(fields) > 5 else ""
    rights, inode = fields[1], int(fields[4])
    return Mapping(
        int(start, 16), int(end, 16), rights[:3], rights[3] == "s", int(fields[2], 16), inode, fields[3], name
    )


def private(mappings: Sequence[Mapping]) -> list[Mapping]:
    """Those that hold pages of the process's own."""
    return [mapping for mapping in mappings if not mapping.shared]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the address space that should show what `source` shows."""

    start: int
    end: int
    source: Mapping
    instead: Mapping | None

    @property
    def only_rights(self) -> bool:
        """Whether the same is there already, with other rights."""
        return self.instead is not None and self.instead.kind()[1:] == self.source.kind()[1:]


def differences(have: Sequence[Mapping], want: Sequence[Mapping]) -> tuple[list[Piece], list[Run]]:
    """What to map anew and what to unmap, so that `have` becomes `want`."""
    same = set(have) & set(want)  # nearly all of them
    have, want = ([mapping for mapping in side if mapping not in same] for side in (have, want))
    edges = sorted({edge for mapping in (*have, *want) for edge in mapping.run})
    anew: list[Piece] = []
    gone: list[Run] = []
    now, then = _Cursor(have), _Cursor(want)
    for start, end in zip(edges, edges[1:], strict=False):
        old, new = now.at(start), then.at(start)
        if new is None and old is not None:
            _extend(gone, start, end)
        elif new is not None and (old is None or old.kind() != new.kind()):
            if anew and anew[-1].end == start and anew[-1].source is new and anew[-1].instead is old:
                anew[-1] = Piece(anew[-1].start, end, new, old)
            else:
                anew.append(Piece(start, end, new, old))
    return anew, gone


def _extend(runs: list[Run], start: int, end: int) -> None:
    if runs and runs[-1][1] == start:
        runs[-1] = (runs[-1][0], end)
    else:
        runs.append((start, end))


class _Cursor:
    """Looks up ascending addresses in sorted mappings."""

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self._mappings = mappings
        self._next = 0

    def at(self, address: int) -> Mapping | None:
        while self._next < len(self._mappings) and self._mappings[self._next].end <= address:
            self._next += 1
        if self._next < len(self._mappings) and self._mappings[self._next].start <= address:
            return self._mappings[self._next]
        return None
