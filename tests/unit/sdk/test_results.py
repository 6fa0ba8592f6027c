"""Results."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from hotbed.errors import ProtocolError
from hotbed.sdk.results import Result, result_from_wire

PLAIN: dict[str, Any] = {"id": "x", "status": "ok", "ok": True, "exit_code": 0}


def result(**fields: Any) -> Result:
    """A result as it comes from the wire."""
    return result_from_wire({**PLAIN, **fields})


def test_ok_is_an_exit_with_zero() -> None:
    """And nothing else is."""
    assert result().ok
    assert not result(status="exit", ok=False, exit_code=3).ok
    assert not result(status="timeout", ok=False, exit_code=-1).ok


def test_streams_are_exact_as_bytes_and_readable_as_text() -> None:
    """A program may print anything."""
    raw = b"a\xff"
    found = result(stdout="", stdout_b64=b64encode(raw).decode(), stderr="é")

    assert (found.stdout, found.stdout_bytes) == ("a�", raw)
    assert (found.stderr, found.stderr_bytes) == ("é", "é".encode())


def test_output_is_merged_in_the_order_of_writing() -> None:
    """Also when a cut falls inside a character."""
    found = result(stdout="é2", stderr="E", order=[[1, 1], [2, 1], [1, 2]])

    assert found.output == "\ufffdE\ufffd2"
    assert result(stdout="ab", stderr="E", order=[[1, 1], [2, 1], [1, 1]]).output == "aEb"


def test_output_without_an_order_is_one_stream_after_the_other() -> None:
    """Nothing is lost."""
    assert result(stdout="ab", stderr="E").output == "abE"


def test_seed_is_never_claimed() -> None:
    """Off, unless the node says otherwise."""
    assert result(seed="ab" * 32).seed_ack == "off"


def test_result_cannot_be_changed() -> None:
    """A reward is computed from it."""
    with pytest.raises(FrozenInstanceError):
        result().status = "ok"  # type: ignore[misc]  # the point of the test


def test_repr_shows_how_it_ended_and_a_little_of_what_it_printed() -> None:
    """A notebook prints results all the time."""
    shown = repr(result(status="signal", ok=False, exit_code=-1, signal=11, stdout="x" * 500, truncated=True))

    assert len(shown) < 220
    assert shown.startswith("Result(status='signal', exit_code=-1, signal=11, stdout='xxx")


@pytest.mark.parametrize("data", [None, [], {}, {**PLAIN, "exit_code": "zero"}, {**PLAIN, "order": [1]}])
def test_answer_that_is_no_result_is_named(data: Any) -> None:
    """With the field."""
    with pytest.raises(ProtocolError):
        result_from_wire(data)
