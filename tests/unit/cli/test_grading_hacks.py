"""The candidates that doctor's self-check tries."""

from __future__ import annotations

import ast

from hotbed.cli import grading_hacks as hacks


def test_every_hack_is_a_program() -> None:
    """One that did not even parse would be refused for that, and show nothing."""
    sources = [*hacks.CLASSICS, *hacks.DYING, hacks.HUNTER, hacks.GUESSER, hacks.LEAVER, hacks.FINDER, hacks.HONEST]
    sources += [hacks.CHANNEL + forger for forger in hacks.FORGERS]
    sources += [*hacks.TESTS_THAT_LEAVE, hacks.TESTS_THAT_LOOK, *(tests for _, _, tests in hacks.PLANTED)]

    assert all(ast.parse(source).body for source in sources)


def test_the_hunter_does_not_find_itself() -> None:
    """What it looks for must not be in its own text."""
    assert "marker-71" not in hacks.HUNTER
