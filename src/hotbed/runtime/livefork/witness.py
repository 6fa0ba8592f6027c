"""The witness: a fork of a template that never runs, and what it looks like.

Whatever else is forked from the template shares most pages with it. Where a page's place in memory is visible, sharing
proves that content is equal; elsewhere content is compared with the copy of the witness's pages that is made here.
"""

from __future__ import annotations

from hotbed.runtime.livefork import maps, pages
from hotbed.runtime.livefork.image import Image
from hotbed.runtime.livefork.pages import Pagemap
from hotbed.runtime.livefork.runs import Run, both, minus, union


class Witness:
    """One template's. It must be stopped, or blocked for ever."""

    def __init__(self, pid: int, *, trust_places: bool) -> None:
        self.pid = pid
        self.trusts_places = trust_places
        mappings = maps.private(maps.read(pid))
        self.pagemap = Pagemap(pid)
        self.own = union(pages.own(self.pagemap, mappings))
        self.image = Image.of(pid, self.own, self.own)

    def close(self) -> None:
        """Let go of it."""
        self.image.close()
        self.pagemap.__exit__(None, None, None)

    def strangers(self, pid: int, pagemap: Pagemap, runs: list[Run], closed: list[Run]) -> list[Run]:
        """Of these pages of a stopped process, those that are not provably equal to the witness's."""
        if self.trusts_places:
            return pages.unlike(pagemap, self.pagemap, runs)
        common = both(runs, self.own)
        seen = Image.of(pid, common, union(closed, pages.shared(pagemap, common)))
        try:
            return union(minus(runs, common), seen.unlike(self.image, common))
        finally:
            seen.close()


def closed_to(mappings: list[maps.Mapping], right: str) -> list[Run]:
    """The addresses for which the process has given up this right itself."""
    return union(mapping.run for mapping in mappings if right not in mapping.rights)
