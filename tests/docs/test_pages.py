"""Pages hold together: links lead somewhere, promises about pages are kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchor, headings, links, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file that exists, and a heading that the file has."""
    assert [link for link in links(page) if not link.startswith(("http", "mailto:")) and not leads(page, link)] == []


def test_architecture_can_be_read_in_one_sitting() -> None:
    """150 lines: a map, the invariants, one request's path."""
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 150


def test_make_commands_on_pages_exist() -> None:
    """A command a page tells you to type is a target."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    told = {target for page in PAGES for target in re.findall(r"`make ([a-z]+)`", page.read_text())}

    assert told - targets == set()


def test_decisions_are_numbered_and_complete() -> None:
    """Each record says what was decided, what was rejected and what would change our mind."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    sections = ["Context", "Decision", "Rejected", "What would change our mind"]

    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    assert [name(r) for r in records if [text for level, text in headings(r) if level == 2] != sections] == []


def leads(page: Path, link: str) -> bool:
    """Whether a relative link has an end."""
    path, _, fragment = link.partition("#")
    target = (page.parent / path) if path else page
    if not target.exists():
        return False
    return not fragment or fragment in {anchor(text) for _, text in headings(target)}
