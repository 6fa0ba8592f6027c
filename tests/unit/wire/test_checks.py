"""Checks that both ends make."""

from __future__ import annotations

import math

import pytest

from hotbed.errors import BadPath, InvalidRequest, InvalidSeed
from hotbed.wire.checks import fresh_seed, require_path, require_positive, require_seed, seed_text


@pytest.mark.parametrize("value", [0, -1, -0.5, math.inf, math.nan, True])
def test_a_number_that_is_not_above_zero_is_refused_by_name(value: float) -> None:
    """A timeout of True seconds is a mistake."""
    with pytest.raises(InvalidRequest, match="timeout_seconds"):
        require_positive("timeout_seconds", value)


def test_none_means_not_given() -> None:
    """Optional fields pass through the same checks."""
    require_positive("ttl_s", None)
    require_seed(None)


@pytest.mark.parametrize("path", ["", "relative", "/a\0b", "/" + "x" * 5000, "/work/\udcff"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    """The kernel would say less about why."""
    with pytest.raises(BadPath):
        require_path(path)


@pytest.mark.parametrize("seed", ["", "ab", "g" * 64, "a" * 65])
def test_a_seed_is_exactly_64_hex_characters(seed: str) -> None:
    """A short seed would silently be another one."""
    with pytest.raises(InvalidSeed):
        require_seed(seed)


def test_one_seed_in_its_three_forms_is_one_text() -> None:
    """So that a rollout can be repeated whichever form it was given in."""
    assert seed_text(1) == seed_text((1).to_bytes(32, "big")) == seed_text("0" * 63 + "1") == "0" * 63 + "1"
    assert seed_text("A" * 64) == "a" * 64


@pytest.mark.parametrize("seed", [-1, 1 << 256, pytest.param(10**5000, id="5000 digits"), b"short", True, "xyz", 1.5])
def test_a_seed_in_no_form_is_refused(seed: object) -> None:
    """Rounding a seed would make two runs differ for no visible reason."""
    with pytest.raises(InvalidSeed):
        seed_text(seed)  # type: ignore[arg-type]  # what a user may pass all the same


def test_fresh_seeds_differ() -> None:
    """Each unseeded rollout is its own."""
    assert len({fresh_seed() for _ in range(100)}) == 100
