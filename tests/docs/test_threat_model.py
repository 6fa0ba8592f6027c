"""Each claim of the threat model has a test of its name that tries to break it, and no test is without its claim."""

from __future__ import annotations

import re

from hotbed.cli import grading_attacks
from hotbed.runtime.selfcheck.table import ATTEMPTS
from tests.docs.pages import ROOT, headings

PAGE = ROOT / "docs" / "threat-model.md"
CLAIM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
TEST = re.compile(r"^(?:async )?def test_(\w+)\(", re.M)


def test_claims_and_escape_tests_are_the_same_list() -> None:
    """A claim that nobody tries to break is a wish; a test without a claim is a claim that nobody can read."""
    tests = [test for file in (ROOT / "tests" / "escape").glob("test_*.py") for test in TEST.findall(file.read_text())]

    assert sorted(test.replace("_", "-") for test in tests) == sorted(claims())


def test_claims_are_told_apart() -> None:
    """One claim, one heading."""
    assert len(set(claims())) == len(claims())


def test_the_self_check_attempts_the_sections_that_the_page_says() -> None:
    """All claims of these, and none of any other."""
    found: list[str] = []
    sections: dict[str, list[str]] = {}
    for level, text in headings(PAGE):
        if level == 2 and text.startswith("Claims: "):
            found = sections.setdefault(text.removeprefix("Claims: "), [])
        elif level == 3 and CLAIM.fullmatch(text):
            found.append(text)
    said = re.search(r"those on ([^:]*?)\.\n", PAGE.read_text())
    assert said is not None
    names = [name.removeprefix("and ") for name in re.split(r",\s+", said[1])]

    tried = [attempt.claim for attempt in ATTEMPTS] + [attempt.claim for attempt in grading_attacks.ATTEMPTS]

    assert sorted(tried) == sorted(claim for name in names for claim in sections[name])


def claims() -> list[str]:
    """The claims, as the page has them."""
    return [text for level, text in headings(PAGE) if level == 3 and CLAIM.fullmatch(text)]
