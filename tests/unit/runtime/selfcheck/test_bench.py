"""What attempts stand on: an attempt that did not run is not one that was withstood."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from hotbed.runtime.base import ExecOutcome
from hotbed.runtime.selfcheck.bench import Bench, Broken, below, hold


class FailingBench(Bench):
    """Everything in it fails."""

    def __init__(self) -> None:
        return None

    async def code(self, source: str, *, timeout_s: float = 20.0, **limits: Any) -> ExecOutcome:
        """As a program with a mistake would."""
        return ExecOutcome(status="exit", exit_code=1, stderr=b"SyntaxError")


def test_attempt_that_fails_itself_is_told_apart() -> None:
    """A typing error in an attempt must not look like safety."""
    with pytest.raises(Broken, match="the attempt itself failed.*SyntaxError"):
        asyncio.run(FailingBench().answer("print("))


def test_hold_raises_with_its_message() -> None:
    """Anything false."""
    hold([1], "fine")
    with pytest.raises(Broken, match="empty"):
        hold([], "empty")


def test_descendants_are_found_by_the_hosts_numbers() -> None:
    """Whatever they call themselves."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in below(os.getpid())
    finally:
        child.kill()
        child.communicate()
    assert child.pid not in below(os.getpid())
