"""The Markdown pages of the repository, and the code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("compat/*/*.md")])
#: A fenced block: its indentation, information string and text.
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```", re.M | re.S)
TITLE = re.compile(r'title="([^"]+)"')
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block. `line` is where its text begins."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text()
    for match in FENCE.finditer(text):
        words = match["info"].split()
        title = TITLE.search(match["info"])
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start("text")) + 1,
            language=words[0] if words else "",
            title=title[1] if title else None,
            text=re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M),
        )


def prose(page: Path) -> str:
    """A page without its blocks."""
    return FENCE.sub("", page.read_text())


def links(page: Path) -> list[str]:
    """Where a page's links go."""
    return LINK.findall(prose(page))


def headings(page: Path) -> list[tuple[int, str]]:
    """(level, text) of each heading of a page."""
    return [(len(marks), text.strip()) for marks, text in re.findall(r"^(#+) (.*)$", prose(page), re.M)]


def anchor(heading: str) -> str:
    """The fragment by which a heading is linked."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def name(page: Path) -> str:
    """A page as it is called in messages."""
    return page.relative_to(ROOT).as_posix()
