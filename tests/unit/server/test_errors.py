"""Any failure as an answer."""

from __future__ import annotations

import json
import logging

import msgspec
import pytest
from starlette.requests import ClientDisconnect

from hotbed.errors import AtCapacity, Error, SandboxGone
from hotbed.server.errors import as_error, error_response
from hotbed.wire.execs import ExecRequest
from hotbed.wire.grading import GradeRequest
from hotbed.wire.live import ForkSandbox


def test_our_errors_keep_their_status_code_and_hint() -> None:
    """And say when to come back."""
    response = error_response(AtCapacity("full", hint="wait", retry_after_s=0.2))

    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert json.loads(bytes(response.body)) == {
        "error": "full",
        "error_code": "at_capacity",
        "code": "at_capacity",
        "message": "full",
        "hint": "wait",
    }
    assert error_response(SandboxGone("x")).status_code == 410


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff\xfe\0garbage", "not JSON"),
        (b'{"code": 1}', "`code`"),
        (b'{"code": "x", "files": [{"path": 3}]}', r"`files\[0\].path`"),
        (b"[1]", "object"),
        (b"", "not JSON"),
    ],
)
def test_a_body_that_cannot_be_read_is_the_callers_mistake(body: bytes, message: str) -> None:
    """With the field named."""
    with pytest.raises(msgspec.DecodeError) as failure:
        msgspec.json.decode(body, type=ExecRequest)

    error = as_error(failure.value)

    assert error.code == "invalid_request"
    with pytest.raises(Error, match=message):
        raise error


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ExecRequest, b'{"code": "x", "seed": 7}'),
        (GradeRequest, b'{"spec": {}, "codes": ["x"], "seeds": [null, 1.5]}'),
        (ForkSandbox, b'{"base_seed": []}'),
    ],
)
def test_a_seed_of_another_type_is_no_seed(kind: type, body: bytes) -> None:
    """And says what one is in JSON, where it cannot be an int or bytes."""
    with pytest.raises(msgspec.ValidationError) as failure:
        msgspec.json.decode(body, type=kind)

    error = as_error(failure.value)

    assert (error.code, "64 hex characters" in str(error.hint)) == ("invalid_seed", True)


def test_what_nobody_foresaw_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """A traceback may hold another tenant's words."""
    with caplog.at_level(logging.ERROR):
        error = as_error(RuntimeError("secret"))

    assert (error.code, error.status) == ("internal", 500)
    assert "secret" not in str(error)
    assert "secret" in caplog.text


def test_a_message_may_name_a_file_that_is_not_utf8() -> None:
    """The name is the sandbox's choice."""
    response = error_response(SandboxGone("no file /work/\udcff"))

    assert json.loads(bytes(response.body))["message"] == "no file /work/\udcff"


def test_a_client_that_left_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is logged as unforeseen."""
    assert as_error(ClientDisconnect()).code == "invalid_request"
    assert caplog.text == ""
