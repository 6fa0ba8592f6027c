"""A request is cut and checked before anything of it is done."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from hotbed.guest.agent.request import Refused, parse, refusal


def header(**fields: Any) -> dict[str, Any]:
    """A whole request, with some fields replaced."""
    return {"op": "exec", "id": "x", "kind": "code", "program": 0, "files": [], "stdin": 0, **fields}


def test_the_body_is_cut_into_program_files_and_stdin() -> None:
    """In this order, by the lengths in the header."""
    request = parse(header(program=2, files=[["/a", 3, 0o600], ["/b", 0, 0o644]], stdin=1), b"ppfffs")

    assert (request.program, request.stdin) == (b"pp", b"s")
    assert request.files == [("/a", b"fff", 0o600), ("/b", b"", 0o644)]


def test_what_is_left_out_has_a_default() -> None:
    """The least that is needed is an id and a kind."""
    request = parse({"op": "exec", "id": "x", "kind": "command"}, b"")

    assert (request.cwd, request.timeout_s, request.env, request.keep_going) == (None, 60.0, {}, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 3},
        {"kind": None},
        {"program": 1},
        {"program": True},
        {"program": -1, "stdin": 1},
        {"cwd": 4},
        {"cwd": "a\0"},
        {"env": {"": "x"}},
        {"env": {"A=B": "x"}},
        {"env": {"A": "x\0"}},
        {"args": [1]},
        {"kind": "commands"},
        {"kind": "commands", "argv": [["a"], "b"]},
    ],
)
def test_nonsense_is_refused(fields: dict[str, Any]) -> None:
    """With a word about what is wrong."""
    with pytest.raises(Refused) as refused:
        parse(header(**fields), b"")

    assert refused.value.code == "bad_request"
    assert str(refused.value)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOENT, "not_found"),
        (errno.ENOSPC, "no_space"),
        (errno.EACCES, "denied"),
        (errno.EBADF, "failed"),
        (errno.ETOOMANYREFS, "busy"),
    ],
)
def test_system_errors_have_codes(number: int, code: str) -> None:
    """The node turns them into errors of its own."""
    assert refusal(OSError(number, "why"), "cannot").code == code
