"""Commands run in this process, against a node on the fake backend."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hotbed.cli.main import main
from tests.unit.sdk.conftest import node_socket

__all__ = ["hotbed", "node_socket"]

Hotbed = Callable[..., "Said"]


class Said:
    """What a command said and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        """Standard output as data."""
        return json.loads(self.out)


@pytest.fixture
def hotbed(node_socket: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Hotbed:
    """Runs a command line."""
    monkeypatch.setenv("HOTBED_URL", f"unix://{node_socket}")

    def run(*argv: str) -> Said:
        code = main(argv)
        return Said(code, *capfd.readouterr())

    return run
