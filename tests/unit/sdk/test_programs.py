"""What a caller asks for, checked before anything is sent."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from hotbed.errors import BadPath, InvalidRequest, InvalidSeed
from hotbed.sdk.programs import exec_request, rollout_request
from hotbed.wire.execs import ExecRequest


def request(**given: Any) -> ExecRequest:
    """A request with everything else left out."""
    empty: dict[str, Any] = dict.fromkeys(("code", "command", "commands", "files", "stdin", "env", "cwd", "seed"))
    return exec_request(**{**empty, "args": (), "timeout_seconds": 60.0, **given})


def test_siblings_are_told_by_a_label() -> None:
    """The one that the ledger and recordings know groups by; without a group there is none."""
    empty: dict[str, Any] = dict.fromkeys(("command", "commands", "files", "stdin", "env", "cwd", "seed"))
    given: dict[str, Any] = {
        **empty,
        "code": "1",
        "args": (),
        "timeout_seconds": 1.0,
        "limits": None,
        "min_isolation": None,
    }

    assert rollout_request("python", **given, group_id="g").labels == {"group_id": "g"}
    assert rollout_request("python", **given).labels == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to run.*one of code="),
        ({"code": "1", "command": "true"}, "code and command were given together"),
        ({"command": "true", "commands": [["true"]]}, "command and commands"),
        ({"commands": []}, "commands is empty"),
        ({"commands": ["true"]}, r"commands\[0\] is one string"),
        ({"commands": [["a\0b"]]}, "NUL"),
        ({"commands": [[1]]}, "not text"),
        ({"code": 5}, "code must be str or bytes, not int"),
        ({"code": "1", "args": "ab"}, "args is one string"),
        ({"code": "1", "timeout_seconds": -1}, "timeout_seconds must be a number above 0, not -1"),
        ({"code": "1", "timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"code": "1", "timeout_seconds": 10**6}, "at most"),
        ({"code": "1", "env": {"A=B": "c"}}, "cannot be set"),
        ({"code": "1", "env": {"A": 1}}, "not text on both sides"),
        ({"code": "1", "files": "x"}, "files is one string"),
        ({"code": "1", "files": [{"path": "/a"}]}, "has no content"),
        ({"code": "1", "files": ["/a"]}, "files holds '/a'"),
        ({"code": "1", "files": {"/a": 7}}, "content of /a is int"),
        ({"code": "1", "output_bytes": -1}, "output_bytes"),
    ],
)
def test_mistake_is_named(given: dict[str, Any], message: str) -> None:
    """What was asked, what is wrong with it."""
    with pytest.raises(InvalidRequest, match=message):
        request(**given)


@pytest.mark.parametrize("given", [{"files": {"work/x": ""}}, {"cwd": "work"}, {"files": {"/a\0": b""}}])
def test_bad_path_has_its_own_error(given: dict[str, Any]) -> None:
    """As everywhere else."""
    with pytest.raises(BadPath):
        request(code="1", **given)


@pytest.mark.parametrize("seed", ["c0ffee", "g" * 64, -1, 1 << 256, b"short", True, 1.5])
def test_bad_seed_says_what_a_seed_is(seed: Any) -> None:
    """The three forms."""
    with pytest.raises(InvalidSeed, match="64 hex characters"):
        request(code="1", seed=seed)


@pytest.mark.parametrize("seed", ["AB" * 32, int("ab" * 32, 16), bytes.fromhex("ab" * 32)])
def test_seed_has_one_form_on_the_wire(seed: Any) -> None:
    """Text, int and bytes of the same value are the same seed."""
    assert request(code="1", seed=seed).seed == "ab" * 32


def test_bytes_travel_as_bytes() -> None:
    """Nothing is decoded on the way."""
    made = request(code=b"\xff", stdin=b"\0", files={"/a": b"\xfe", "/b": "text"})

    assert (made.code, made.code_b64, made.stdin_b64) == (None, b"\xff", b"\0")
    assert [file.data for file in made.files] == [b"\xfe", b"text"]


def test_files_have_two_forms() -> None:
    """A mapping, or the published list of objects, which also carries modes."""
    listed = request(code="1", files=[{"path": "/a", "content": "x", "mode": 0o755}])

    assert (listed.files[0].path, listed.files[0].mode) == ("/a", 0o755)
    assert request(code="1", files={"/a": "x"}).files[0].mode == 0o644


def test_path_objects_are_paths() -> None:
    """Also as arguments."""
    made = request(commands=[["cat", PurePosixPath("/a")]], cwd=PurePosixPath("/work"))

    assert (made.commands, made.cwd) == ((("cat", "/a"),), "/work")


@pytest.mark.parametrize("template", [None, 5, ""])
def test_template_is_a_name(template: Any) -> None:
    """With the built-in ones in the hint."""
    with pytest.raises(InvalidRequest, match="python-numpy"):
        rollout_request(
            template,
            limits=None,
            min_isolation=None,
            group_id="",
            **dict.fromkeys(("command", "commands", "files", "stdin", "env", "cwd", "seed")),
            code="1",
            args=(),
            timeout_seconds=1.0,
        )
