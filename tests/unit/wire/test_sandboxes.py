"""Sandbox requests."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import BadPath, InvalidRequest
from hotbed.wire.sandboxes import CreateSandbox, FileOperation


@pytest.mark.parametrize("wrong", [{"ttl_s": 0}, {"idle_ttl_s": -1.0}, {"seed": "x"}, {"template": ""}])
def test_a_sandbox_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is forked."""
    with pytest.raises(InvalidRequest):
        CreateSandbox(**{"template": "python", **wrong})


def test_a_file_operation_needs_an_absolute_path() -> None:
    """There is no directory that a relative one would start from."""
    with pytest.raises(BadPath):
        FileOperation(operation="stat", path="a")
