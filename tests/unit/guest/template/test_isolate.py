"""Isolation: its limits as values, and that a stage that fails is named. That it holds is for tests/escape."""

from __future__ import annotations

import errno
import os
import resource
import socket
from typing import Any

import pytest

from hotbed.guest import frames, kernel
from hotbed.guest.template import isolate

LIMITS = {"memory_mib": 64, "pids": 7, "disk_mib": 16, "files": 100, "open_files": 99}


def test_limits_become_rlimits() -> None:
    """No core dumps, and the numbers that were asked for."""
    assert isolate.rlimits({"limits": LIMITS}) == [
        (resource.RLIMIT_NOFILE, 99),
        (resource.RLIMIT_NPROC, 7),
        (resource.RLIMIT_CORE, 0),
    ]


def test_a_cgroup_that_counts_processes_is_the_first_to_refuse() -> None:
    """An rlimit as low would refuse before it, and nothing would have been counted."""
    found = dict(isolate.rlimits({"limits": LIMITS, "events": ["memory", "pids"]}))

    assert found[resource.RLIMIT_NPROC] > LIMITS["pids"]


def test_data_is_limited_where_no_cgroup_counts_memory() -> None:
    """Per process, which is less than a promise and more than nothing; and so are files in memory."""
    found = dict(isolate.rlimits({"limits": LIMITS, "limit_data": True}))

    assert found[resource.RLIMIT_DATA] == found[resource.RLIMIT_FSIZE] == 64 << 20


@pytest.mark.parametrize("error", [OSError(1, "refused"), ValueError("no such limit"), OverflowError("too large")])
def test_any_failure_is_raised_with_its_stage(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Nothing ever goes on with less; whoever reads the message learns what this host refuses."""

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(kernel, "setns", lambda fd, kind: None)
    monkeypatch.setattr(kernel, "unshare", lambda flags: None)
    monkeypatch.setattr(kernel, "mount", fail)

    with pytest.raises(isolate.Failed, match="^tmpfs: "):
        isolate.Isolator(["/usr"]).enter({"limits": LIMITS, "hostname": "x"}, 0, ())


def test_rights_are_given_up_last_and_the_filter_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter forbids what comes before it."""
    done: list[str] = []
    monkeypatch.setattr(kernel, "empty_bounding_set", lambda: done.append("bounding"))
    monkeypatch.setattr(kernel, "drop_capabilities", lambda: done.append("capabilities"))
    monkeypatch.setattr(kernel, "prctl", lambda *_: done.append("dumpable"))
    monkeypatch.setattr(kernel.Filter, "install", lambda self: done.append("filter"))

    isolate.Isolator([])._give_up_rights()

    assert done == ["bounding", "capabilities", "dumpable", "filter"]


@pytest.mark.parametrize(("number", "code"), [(errno.EAGAIN, "busy"), (errno.EPERM, "isolation_failed")])
def test_what_may_pass_is_told_apart_from_what_will_not(number: int, code: str) -> None:
    """A host without room for another process has it again later. The caller's descriptor stays open."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        isolate.tell(theirs.fileno(), OSError(number, "no"), "fork: no")

        header, _, _ = frames.Connection(ours).receive()
        assert header == {"op": "error", "code": code, "message": "fork: no"}
        assert os.fstat(theirs.fileno())


def test_nobody_needs_to_listen() -> None:
    """The node may have given the sandbox up already."""
    ours, theirs = socket.socketpair()
    ours.close()
    isolate.tell(theirs.fileno(), None, "too late")
    theirs.close()
