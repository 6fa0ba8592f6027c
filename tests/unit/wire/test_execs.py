"""Exec requests and answers."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import BadPath, InvalidRequest, InvalidSeed
from hotbed.wire.execs import (
    ExecRequest,
    ExecResponse,
    FileSpec,
    OutputEvent,
    RolloutRequest,
    either_bytes,
    text_or_bytes,
)

WRONG: dict[str, dict[str, Any]] = {
    "nothing to run": {},
    "code and command": {"code": "1", "command": "ls"},
    "code and code_b64": {"code": "1", "code_b64": b"1"},
    "stdin and stdin_b64": {"code": "1", "stdin": "a", "stdin_b64": b"a"},
    "timeout_seconds must be a number above 0": {"code": "1", "timeout_seconds": -1.0},
    "timeout_seconds must be a number above 0, not None": {"code": "1", "timeout_seconds": None},
    "timeout_seconds must be at most": {"code": "1", "timeout_seconds": 1e9},
    "output_bytes": {"code": "1", "output_bytes": -1},
    "env name": {"code": "1", "env": {"A=B": "c"}},
}


@pytest.mark.parametrize("message", WRONG)
def test_a_request_that_makes_no_sense_names_its_field(message: str) -> None:
    """The user sees which of twenty fields it was."""
    with pytest.raises(InvalidRequest, match=message):
        ExecRequest(**WRONG[message])


def test_a_wrong_seed_and_a_wrong_directory_have_codes_of_their_own() -> None:
    """Trainers treat a bad seed as a fatal configuration error."""
    with pytest.raises(InvalidSeed):
        ExecRequest(code="1", seed="beef")
    with pytest.raises(BadPath):
        ExecRequest(code="1", cwd="work")


def test_empty_code_is_something_to_run() -> None:
    """An empty program ends at once, with success."""
    assert ExecRequest(code="").code == ""


def test_a_rollout_is_an_exec_with_a_template() -> None:
    """Whatever holds for an exec holds for a rollout."""
    with pytest.raises(InvalidRequest, match="nothing to run"):
        RolloutRequest(template="python")
    with pytest.raises(InvalidRequest, match="template is empty"):
        RolloutRequest(template="", code="1")


def test_a_file_has_content_in_one_form() -> None:
    """Two contents would be one too many, none is a mistake."""
    assert FileSpec(path="/work/a", content="é").data == "é".encode()
    assert FileSpec(path="/work/a", content_b64=b"\xff").data == b"\xff"
    for wrong in (
        {},
        {"content": "", "content_b64": b""},
        {"content": "", "mode": 0o10000},
        {"content": "", "mode": "755"},
    ):
        with pytest.raises(InvalidRequest):
            FileSpec(path="/work/a", **wrong)


def test_any_bytes_survive_a_text_field() -> None:
    """Output that is not UTF-8 must not be mangled."""
    for data in (b"plain", "é".encode(), b"\xff\xfe\0", b""):
        assert either_bytes(*text_or_bytes(data)) == data


def test_the_answer_gives_the_bytes_whichever_field_has_them() -> None:
    """Callers who want bytes never look at two fields."""
    answer = ExecResponse(id="e", status="ok", ok=True, exit_code=0, stdout="a", stderr_b64=b"\xff")

    assert (answer.stdout_bytes, answer.stderr_bytes) == (b"a", b"\xff")
    assert OutputEvent(fd=1, data="b").data_bytes == b"b"


@pytest.mark.parametrize(
    "clock", [{"year": 2030}, {"epoch_ns": -1}, {"epoch_ns": 1 << 62}, {"step_ns": 0}, {"step_ns": 2 * 10**9}, 7]
)
def test_a_clock_that_cannot_be_is_refused(clock: Any) -> None:
    """With the field's name, and what it may be."""
    with pytest.raises(InvalidRequest, match="clock"):
        ExecRequest(code="1", clock=clock)
