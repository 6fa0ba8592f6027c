"""The witness: a fork of a template that never runs, and what it looks like.

Whatever else is forked from the template shares most pages with it. Where a page's place in memory is visible, sharing
proves that content is equal; elsewhere content is compared with the copy of the witness's pages that is made here.
"""

from __future__ import annotations

from hotbed.runtime.livefork import maps, pages
from hotbed.runtime.livefork.arena import Arena
from hotbed.runtime.livefork.facts import Manner
from hotbed.runtime.livefork.image import Image
from hotbed.runtime.livefork.pages import Pagemap
from hotbed.runtime.livefork.runs import Run, both, minus, union


class Witness:
    """One template's. It must be stopped, or blocked for ever."""

    def __init__(self, pid: int, *, trust_places: bool) -> None:
        self.pid = pid
        self.arena = Arena()
        self.newborn: Manner | None = None  # how a program of the template is set up before it has done anything
        self.trusts_places = trust_places
        everything = maps.read(pid)
        self.files = {mapping.name for mapping in everything if mapping.is_file}
        mappings = maps.private(everything)
        self.pagemap = Pagemap(pid)
        self.own = pages.census(self.pagemap, mappings, None).own
        self.image = Image.of(pid, self.own, self.own)

    def close(self) -> None:
        """Let go of it."""
        self.image.close()
        self.pagemap.__exit__(None, None, None)

    def census(self, pid: int, mappings: list[maps.Mapping]) -> pages.Census:
        """The own pages of a stopped process, and which of them are not provably equal to the witness's."""
        with Pagemap(pid) as pagemap:
            counted = pages.census(pagemap, mappings, self.pagemap if self.trusts_places else None)
        if counted.strangers is not None:
            return counted
        common = both(counted.own, self.own)
        seen = Image.of(pid, common, union(closed_to(mappings, "r"), counted.shared), self.arena)
        try:
            strangers = union(minus(counted.own, common), seen.unlike(self.image, common))
        finally:
            seen.close()
        return pages.Census(counted.own, strangers, both(counted.shared, strangers))


def closed_to(mappings: list[maps.Mapping], right: str) -> list[Run]:
    """The addresses for which the process has given up this right itself."""
    return union(mapping.run for mapping in mappings if right not in mapping.rights)
