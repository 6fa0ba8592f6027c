"""An exception to a rule says why, on its line."""

from __future__ import annotations

import re

from tests.meta.tree import ROOT, named, python_files

#: An ignore with its codes; what follows is the reason.
IGNORE = re.compile(r"#\s*(?:noqa:\s*[A-Z0-9]+(?:\s*,\s*[A-Z0-9]+)*|type:\s*ignore\[[\w,\s-]+\])(?P<rest>.*)$")
LETTERS = re.compile(r"[A-Za-z]{3,}")
UNFINISHED = re.compile("TO" + "DO|FIX" + "ME|X" + "XX")


def lines() -> list[tuple[str, str]]:
    """(place, text) of every line of Python that we ship or test with."""
    tops = [ROOT / name for name in ("src", "tests", "compat", "benchmarks", "examples")]
    return [
        (f"{named(file)}:{number}", line)
        for file in python_files(*tops)
        for number, line in enumerate(file.read_text().splitlines(), start=1)
    ]


def test_each_ignore_carries_its_reason() -> None:
    """A reader must not have to guess whether the rule or the code is wrong."""
    found = [(place, IGNORE.search(line)) for place, line in lines()]

    assert [place for place, match in found if match and not LETTERS.search(match["rest"])] == []


def test_nothing_is_left_unfinished() -> None:
    """Work that is missing is an issue, not a comment."""
    assert [place for place, line in lines() if UNFINISHED.search(line)] == []
