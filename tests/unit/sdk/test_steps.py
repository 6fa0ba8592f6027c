"""The vocabulary between an exchange and its drivers."""

from __future__ import annotations

from typing import get_args

import pytest

from hotbed.sdk.steps import Step


@pytest.mark.parametrize("step", get_args(Step), ids=lambda step: step.__name__)
def test_steps_are_small(step: type) -> None:
    """One of each is made on every call."""
    assert not hasattr(object.__new__(step), "__dict__")
