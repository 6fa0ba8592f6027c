"""What is asked of a process is checked on both ends."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.processes import Control, ProcessRequest, Terminal


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"command": "sh", "seed": "0" * 64},
        {"command": "sh", "determinism": "full"},
        {"code": "1", "terminal": Terminal()},
        {"commands": (("a",), ("b",)), "terminal": Terminal()},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """A terminal is one command's; what is talked to cannot be pinned."""
    with pytest.raises(InvalidRequest):
        ProcessRequest(**fields)


@pytest.mark.parametrize("size", [(0, 80), (24, 0), (24, 1 << 16), (True, 80), ("24", 80)])
def test_a_terminal_has_a_size(size: tuple[Any, Any]) -> None:
    """That the kernel can keep."""
    with pytest.raises(InvalidRequest, match="terminal"):
        Terminal(rows=size[0], columns=size[1])


@pytest.mark.parametrize(
    "fields", [{"op": "signal"}, {"op": "signal", "signal": 0}, {"op": "signal", "signal": 65}, {"op": "resize"}]
)
def test_a_word_has_what_it_needs(fields: dict[str, Any]) -> None:
    """A signal its number, a size its numbers."""
    with pytest.raises(InvalidRequest):
        Control(**fields)
