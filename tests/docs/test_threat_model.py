"""Each claim of the threat model has a test of its name that tries to break it, and no test is without its claim."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, headings

CLAIM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
TEST = re.compile(r"^(?:async )?def test_(\w+)\(", re.M)


def test_claims_and_escape_tests_are_the_same_list() -> None:
    """A claim that nobody tries to break is a wish; a test without a claim is a claim that nobody can read."""
    tests = [test for file in (ROOT / "tests" / "escape").glob("test_*.py") for test in TEST.findall(file.read_text())]

    assert sorted(test.replace("_", "-") for test in tests) == sorted(claims())


def test_claims_are_told_apart() -> None:
    """One claim, one heading."""
    assert len(set(claims())) == len(claims())


def claims() -> list[str]:
    """The claims, as the page has them."""
    page = ROOT / "docs" / "threat-model.md"
    return [text for level, text in headings(page) if level == 3 and CLAIM.fullmatch(text)]
