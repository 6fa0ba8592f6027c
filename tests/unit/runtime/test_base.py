"""What crosses into a backend has been checked: a bad value is refused where it is made, with its name."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.runtime.base import ARGUMENT_LIMIT, ExecRequest, Limits, TemplateSpec, check_path


@pytest.mark.parametrize(
    "changes",
    [{"cpus": 0}, {"memory_mib": -1}, {"pids": 1.5}, {"files": True}, {"cpus": float("nan")}, {"disk_mib": 2048}],
)
def test_limits_name_what_is_wrong(changes: dict[str, Any]) -> None:
    """A sandbox whose limit means nothing would have none."""
    with pytest.raises(InvalidRequest, match=f"limits.{next(iter(changes))}"):
        Limits(**changes)


def test_limits_change_by_name() -> None:
    """And an unknown one is not ignored."""
    assert Limits().with_changes({"pids": 7}).pids == 7
    with pytest.raises(InvalidRequest, match="unknown limit pid"):
        Limits().with_changes({"pid": 7})


@pytest.mark.parametrize("name", ["", "A", "-x", "a/b", "a" * 64])
def test_template_names_are_plain(name: str) -> None:
    """They become parts of paths and groups."""
    with pytest.raises(InvalidRequest, match="template name"):
        TemplateSpec(name=name)


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "commands"},
        {"kind": "commands", "argv": ((),)},
        {"kind": "command", "program": b"  "},
        {"kind": "command", "program": b"x" * ARGUMENT_LIMIT},
        {"kind": "command", "program": b"a\0b"},
        {"kind": "code", "program": b"1", "timeout_s": 0},
        {"kind": "code", "program": b"1", "output_bytes": -1},
        {"kind": "code", "program": b"1", "files": (("x", b"", 0o644),)},
        {"kind": "code", "program": b"1", "files": (("/x", b"", 0o10000),)},
        {"kind": "nothing"},
    ],
)
def test_an_exec_that_cannot_run_is_refused(request_: dict[str, Any]) -> None:
    """Before anything is forked for it."""
    with pytest.raises(InvalidRequest):
        ExecRequest(**request_)


@pytest.mark.parametrize("path", ["", "x", "../x", "/a\0b", "/" + "a" * 5000])
def test_paths_are_absolute_and_bounded(path: str) -> None:
    """The sandbox's working directory is not the node's business."""
    with pytest.raises(InvalidRequest):
        check_path(path)


def test_what_one_exec_cannot_carry_is_refused_before_anything_is_forked() -> None:
    """The kernel would refuse it inside, where it looked like the program's failure."""
    large = {"A": "x" * ARGUMENT_LIMIT}
    with pytest.raises(InvalidRequest, match="environment variable A of"):
        ExecRequest(kind="command", program=b"true", env=large)
    with pytest.raises(InvalidRequest, match="arguments and environment of"):
        ExecRequest(kind="commands", argv=(("true", *(["x" * 1000] * 3000)),))

    ExecRequest(kind="code", program=b"1", env=large)
