"""Options are checked once, before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.pools.contract import PoolOptions


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 0),
        ("n", -1),
        ("n", 1.0),
        ("n", True),
        ("n", 10_000),
        ("mode", "warm"),
        ("mode", None),
        ("autoreset", True),
        ("recover", "yes"),
        ("step_timeout_s", 0),
        ("step_timeout_s", float("inf")),
        ("reset_timeout_s", "60"),
        ("reset_timeout_s", True),
    ],
)
def test_an_option_out_of_range_is_refused_by_its_public_name(field: str, value: Any) -> None:
    """The name the caller used, not ours."""
    with pytest.raises(InvalidRequest, match=field.removesuffix("_s")):
        PoolOptions(**{"n": 1, field: value})


def test_the_defaults_are_the_plain_pool() -> None:
    """No autoreset, no recovery, a minute for each call."""
    options = PoolOptions(n=1)

    assert (options.mode, options.autoreset, options.recover) == ("default", "disabled", "none")
    assert options.step_timeout_s == options.reset_timeout_s == 60.0
