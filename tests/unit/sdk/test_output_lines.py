"""Event lines, cut where the network likes."""

from __future__ import annotations

import json

import pytest

from hotbed.errors import AtCapacity, ProtocolError
from hotbed.sdk.output_lines import OutputLines

RESULT = {"id": "x", "status": "ok", "ok": True, "exit_code": 0, "stdout": "ab"}


def line(**event: object) -> bytes:
    """One event."""
    return json.dumps(event).encode() + b"\n"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_output_comes_in_order_and_the_result_last(step: int) -> None:
    """However the stream is cut."""
    heard: list[tuple[int, bytes]] = []
    lines = OutputLines(lambda stream, data: heard.append((stream, data)))
    data = line(event="output", fd=1, data="a") + line(event="output", fd=2, data_b64="/w==") + b"\n"
    data += line(event="result", result=RESULT)

    for start in range(0, len(data), step):
        lines.write(data[start : start + step])

    assert heard == [(1, b"a"), (2, b"\xff")]
    assert lines.result().stdout == "ab"


def test_error_at_the_end_is_raised() -> None:
    """The status line was sent long before."""
    with pytest.raises(AtCapacity, match="full"):
        OutputLines(print).write(line(event="error", error={"code": "at_capacity", "message": "full"}))


def test_stream_without_a_result_is_named() -> None:
    """The node died on the way."""
    with pytest.raises(ProtocolError, match="without a result"):
        OutputLines(print).result()


@pytest.mark.parametrize("data", [b'{"event": "news"}\n', b"[]\n", b"nonsense\n"])
def test_foreign_line_is_named(data: bytes) -> None:
    """Not ours."""
    with pytest.raises(ProtocolError):
        OutputLines(print).write(data)
