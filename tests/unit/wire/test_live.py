"""The shapes of live operations."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest, InvalidSeed
from hotbed.wire.live import FORK_LIMIT, ForkSandbox


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0},
        {"count": FORK_LIMIT + 1},
        {"count": True},
        {"labels": ("a", "b")},
        {"ttl_s": -1.0},
        {"seed_mode": "other"},
    ],
)
def test_a_fork_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """Before it travels."""
    with pytest.raises(InvalidRequest):
        ForkSandbox(**fields)


def test_a_base_seed_is_a_seed() -> None:
    """Of 64 hex characters."""
    with pytest.raises(InvalidSeed):
        ForkSandbox(base_seed="7")
