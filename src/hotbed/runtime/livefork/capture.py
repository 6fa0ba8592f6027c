"""Taking a snapshot of a stopped, idle process: which of its pages, and what else, there is to keep.

The dump is complete by construction: of all private pages that the process has of its own, only those are left out
that are provably the witness's. It does not depend on who wrote what, or on who shares what with whom.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from hotbed.runtime.livefork import facts, handles, maps
from hotbed.runtime.livefork.facts import Manner
from hotbed.runtime.livefork.handles import Handle
from hotbed.runtime.livefork.image import Image
from hotbed.runtime.livefork.maps import Mapping
from hotbed.runtime.livefork.runs import PAGE, Run, both, minus, union
from hotbed.runtime.livefork.tracee import Tracee
from hotbed.runtime.livefork.witness import Witness, closed_to

_CHUNK = 256 * PAGE
Digests = dict[int, bytes]


class Unsupported(Exception):
    """Something there cannot be carried over. `names` says what."""

    def __init__(self, names: list[str]) -> None:
        super().__init__("; ".join(names))
        self.names = names


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A process as it was. `own` are all its pages, of which `image` holds those that may not be the witness's.

    `kept` are those that are not, by content: many a page was written and is what it was (a reference, taken and given
    back), and need not be written again. `needs_files`: it cannot be restored before its files are there.
    """

    witness: Witness
    number: int
    mappings: list[Mapping]
    own: list[Run]
    kept: list[Run]
    image: Image
    registers: list[int]
    mask: bytes
    vectors: bytes
    manner: Manner
    handles: tuple[Handle, ...]
    needs_files: bool
    closed: tuple[int, ...] = ()
    skipped: tuple[str, ...] = ()
    digests: Digests = field(default_factory=dict)


def take(tracee: Tracee, witness: Witness, obstacles: list[str], *, skip: bool, verify: bool) -> Capture:
    """Of a stopped process for which `begin` has been called. Raises `Unsupported` unless told to skip.

    `obstacles` were found when it was stopped.
    """
    pid = tracee.pid
    about = facts.status(pid)
    mappings = maps.read(pid)
    opened, closed_files = handles.survey(pid, int(about["PPid"]))
    problems = [*obstacles, *closed_files, *_shared(mappings), *facts.interval_timers(tracee, about)]
    problems += facts.lost_folder(pid)
    if problems and not skip:
        raise Unsupported(problems)
    manner = facts.manner_of(tracee, about)
    kept = [mapping for mapping in mappings if not _is_lost(mapping)]
    own, image = _dump(pid, kept, witness)
    common = both(image.runs, witness.own)
    return Capture(
        witness=witness,
        number=facts.inside_number(about),
        mappings=kept,
        own=own,
        kept=union(minus(image.runs, common), image.unlike(witness.image, common)),
        image=image,
        registers=tracee.registers,
        mask=tracee.mask,
        vectors=tracee.get_vectors(),
        manner=manner,
        handles=opened,
        needs_files=bool(opened) or not _starts_where(manner, witness) or not _files(kept) <= witness.files,
        closed=handles.closed_streams(pid),
        skipped=tuple(problems),
        digests=dict(digests(pid, kept)) if verify else {},
    )


def _dump(pid: int, mappings: list[Mapping], witness: Witness) -> tuple[list[Run], Image]:
    private = maps.private(mappings)
    counted = witness.census(pid, private)
    assert counted.strangers is not None
    closed = union(closed_to(private, "r"), counted.shared)
    return counted.own, Image.of(pid, counted.strangers, closed, witness.arena)


def _starts_where(manner: Manner, witness: Witness) -> bool:
    """Whether a vessel is in its working folder already; nobody knows before there was one."""
    return witness.newborn is not None and witness.newborn.cwd == manner.cwd


def _files(mappings: list[Mapping]) -> set[str]:
    return {mapping.name for mapping in mappings if mapping.is_file}


def _is_lost(mapping: Mapping) -> bool:
    """Shared with others, and not merely a file that is read."""
    return mapping.shared and (not mapping.is_file or "w" in mapping.rights or not _is_path(mapping.name))


def _is_path(name: str) -> bool:
    return name.startswith("/") and not name.endswith(" (deleted)") and not name.startswith(("/memfd:", "/dev/zero"))


def _shared(mappings: list[Mapping]) -> list[str]:
    lost = [f"a shared mapping ({mapping.name or 'anonymous'})" for mapping in mappings if _is_lost(mapping)]
    unnamed = [
        f"a mapping of a file that has been deleted ({mapping.name})"
        for mapping in mappings
        if mapping.is_file and not mapping.shared and not _is_path(mapping.name)
    ]
    return lost + unnamed


def digests(pid: int, mappings: list[Mapping]) -> Iterator[tuple[int, bytes]]:
    """Address and hash of every page that the process can read and nobody shares, its programs and libraries too."""
    for mapping in maps.private(mappings):
        if "r" not in mapping.rights:
            continue
        for start in range(mapping.start, mapping.end, _CHUNK):
            end = min(start + _CHUNK, mapping.end)
            yield from _digests(pid, start, end)


def _digests(pid: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    try:
        chunk = Image.of(pid, [(start, end)], [(start, end)])
    except OSError:  # beyond the end of the file that is mapped
        if end - start > PAGE:
            for page in range(start, end, PAGE):
                yield from _digests(pid, page, page + PAGE)
        return
    data = chunk.bytes()
    chunk.close()
    for offset in range(0, end - start, PAGE):
        yield start + offset, hashlib.blake2b(data[offset : offset + PAGE], digest_size=16).digest()
