"""The published shapes, and how they map to ours."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, SandboxGone, UnknownTemplate
from hotbed.wire import collimate
from hotbed.wire.execs import ExecResponse


def answer(**fields: Any) -> ExecResponse:
    """What ran, in our words."""
    return ExecResponse(**{"id": "exec_1", "status": "ok", "ok": True, "exit_code": 0, **fields})


def test_streams_are_merged_in_the_order_of_printing() -> None:
    """Graders read the last line of one stream, whichever it was printed to."""
    merged = collimate.merged(answer(stdout="ac", stderr="b", order=((1, 1), (2, 1), (1, 1))))

    assert merged == b"abc"


def test_what_the_order_does_not_cover_is_not_lost() -> None:
    """An agent inside a sandbox may say anything of its order."""
    assert collimate.merged(answer(stdout="ab", stderr="c", order=())) == b"abc"
    assert collimate.merged(answer(stdout="ab", stderr="c", order=((2, 9), (1, 1)))) == b"cab"


@pytest.mark.parametrize(
    ("fields", "code", "end"),
    [
        ({"status": "timeout", "exit_code": -1}, -1, "timeout after 3s"),
        ({"status": "oom", "exit_code": -1, "stdout": "1.0\n", "stdout_total": 4}, -1, "more memory than it may"),
        ({"status": "signal", "exit_code": -1, "signal": 11}, 139, ""),
        ({"status": "exit", "exit_code": 3, "stdout": "x"}, 3, "x"),
    ],
)
def test_how_it_ended_is_told_as_the_wire_tells_it(fields: dict[str, Any], code: int, end: str) -> None:
    """What was printed before a kill is never the last line."""
    told = collimate.exec_answer(answer(ok=False, **fields), timeout_s=3)

    assert told["exit_code"] == code
    assert told["stdout"].endswith(end)
    assert told["stderr"] == ""


def test_no_answer_holds_a_null() -> None:
    """The client raises on a null where it expects a number."""
    assert None not in collimate.exec_answer(answer(), timeout_s=1).values()


def test_invalid_bytes_are_replaced() -> None:
    """Guest output is any bytes; JSON is text."""
    assert collimate.exec_answer(answer(stdout_b64=b"\xffok"), timeout_s=1)["stdout"] == "\ufffdok"


def test_of_several_programs_the_command_wins() -> None:
    """Then the argument lists, then the code, as the published server does it."""
    both = collimate.exec_request({"code": "1", "commands": [["true"]], "command": "ls"})
    lists = collimate.exec_request({"code": "1", "commands": [["a", "b"]]})

    assert (both.command, both.code, both.commands) == ("ls", None, None)
    assert lists.commands == (("a", "b"),)


def test_an_exec_has_the_wires_defaults() -> None:
    """30 seconds, and relative files below the working directory."""
    request = collimate.exec_request({"command": "x", "timeout_seconds": 0, "files": [{"path": "a/b", "content": "c"}]})

    assert (request.timeout_seconds, request.cwd, request.files[0].path) == (30.0, "/work", "/work/a/b")


def test_half_a_surrogate_pair_travels_as_bytes() -> None:
    """The client escapes to ASCII, so one may arrive."""
    request = collimate.exec_request({"code": "\ud800", "files": [{"path": "/f", "content": "\udfff"}]})

    assert request.code_b64 == b"\xed\xa0\x80"
    assert request.files[0].data == b"\xed\xbf\xbf"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": 3},
        {"commands": []},
        {"commands": [["a"], []]},
        {"commands": "ls"},
        {"code": "1", "files": 3},
        {"code": "1", "files": [{"content": "no path"}]},
        {"code": "1", "files": ["x"]},
        {"code": "1", "timeout_seconds": "soon"},
    ],
)
def test_a_body_that_makes_no_sense_is_refused(body: dict[str, Any]) -> None:
    """In words, before anything runs."""
    with pytest.raises(InvalidRequest):
        collimate.exec_request(body)


@pytest.mark.parametrize("egress", [{"allow": ["a b"]}, {"mode": "closed"}, 7, {}])
def test_a_policy_that_cannot_be_read_is_refused(egress: object) -> None:
    """To ignore it would be to pretend."""
    with pytest.raises(InvalidRequest, match="egress"):
        collimate.create_request({"template": "python", "egress": egress}, template_field="template")


@pytest.mark.parametrize("egress", [None, {"mode": "none"}, {"allow": []}, {"preset": "rl-leakage"}, {"deny": ["x"]}])
def test_a_policy_is_passed_on_as_it_is(egress: object) -> None:
    """Ours are the published forms."""
    body = {"template": "py", "egress": egress, "labels": {"k": "v"}, "label": "l"}
    request = collimate.create_request(body, template_field="template")

    assert (request.template, request.label, request.labels) == ("python", "l", {"k": "v"})
    assert request.egress == egress


def test_secrets_are_named_in_the_policy() -> None:
    """Alone, they are one."""
    body = {"template": "python", "secret_refs": ["s"]}

    assert collimate.create_request(body, template_field="template").egress == {"secret_refs": ["s"]}
    with_policy = collimate.create_request({**body, "egress": {"allow": ["a.org"]}}, template_field="template")
    assert with_policy.egress == {"allow": ["a.org"], "secret_refs": ["s"]}


def test_each_wire_has_its_own_words_for_an_error() -> None:
    """Both envelopes each, with the hint in the text, since the client shows no other field."""
    body, status = collimate.error_body(UnknownTemplate("no template", hint="see"), collimate.DAEMON_CODES)
    assert (status, body["error_code"], body["error"]) == (404, "no_template", "no template (see)")

    body, status = collimate.error_body(SandboxGone("it ended"), collimate.GATEWAY_CODES)
    assert (status, body["code"], body["message"]) == (404, "not_found", "it ended")

    for codes in (collimate.DAEMON_CODES, collimate.GATEWAY_CODES):
        assert collimate.error_body(AtCapacity("full"), codes)[1] == 503  # 429 is not retried


def test_ids_are_told_apart_by_their_wire() -> None:
    """And ours is taken as it is."""
    assert collimate.inner_id(collimate.SESSION, collimate.outer_id(collimate.SESSION, "ab")) == "ab"
    assert collimate.inner_id(collimate.SANDBOX, "ab") == "ab"
