"""Seeds of a group."""

from __future__ import annotations

import hashlib

import pytest

from hotbed.errors import InvalidSeed, InvalidSpec
from hotbed.grading import DET_SEED, group_seeds, judge_seed, seed_from_key


def test_a_key_gives_its_seed() -> None:
    """As the published client computes it."""
    assert seed_from_key("k", "s") == hashlib.sha256(b"s\0k").hexdigest()


def test_modes() -> None:
    """Common, different, always the same."""
    crn = group_seeds(3)
    assert len(set(crn)) == 1 and crn != group_seeds(3) and group_seeds(2, "crn", 7) == [f"{7:064x}"] * 2
    assert group_seeds(2, "vanilla") == [None, None] and len(set(group_seeds(3, "vanilla", 7))) == 3
    assert group_seeds(2, "deterministic") == [DET_SEED] * 2 and group_seeds(0) == []


def test_mistakes() -> None:
    """Named."""
    with pytest.raises(InvalidSpec, match="mode"):
        group_seeds(1, "other")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(InvalidSpec, match="n must"):
        group_seeds(-1)
    with pytest.raises(InvalidSeed):
        group_seeds(1, "crn", "xyz")


def test_the_judge_draws_from_a_seed_that_no_candidate_holds() -> None:
    """A candidate that knows its own seed cannot compute it by accident; the same group gives the same draws."""
    assert judge_seed("0" * 64) == judge_seed("0" * 64) != "0" * 64 and judge_seed(None) != judge_seed(None)
