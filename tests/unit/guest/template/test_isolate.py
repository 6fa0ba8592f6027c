"""Isolation: its limits as values, and that a stage that fails is named. That it holds is for tests/escape."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import socket
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest import frames, kernel
from hotbed.guest.template import isolate, layers

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


BOX = {"limits": LIMITS, "hostname": "x", "events": []}
ORDER = ["cgroup", "namespaces", "tmpfs", "overlay", "attach", "devpts", "proc", "root", "hostname"]
ORDER += ["user namespace", "limits", "rights"]


def stages(steps: isolate.Steps) -> list[str]:
    """The stages in their order, each once."""
    return [stage for stage, _ in itertools.groupby(step[0] for group in steps for step in group)]


def words(steps: isolate.Steps, stage: str) -> list[tuple[Any, ...]]:
    """The arguments of a stage's calls."""
    return [step[2] for group in steps for step in group if step[0] == stage]


def test_the_order_is_the_argument() -> None:
    """Limits before memory, namespaces before files, files before the root moves, rights at the very end."""
    steps = isolate.Isolator(["/usr"]).steps(isolate.shape(BOX), 7, (8, 9))

    assert stages(steps) == ORDER
    assert [each[1] for each in words(steps, "cgroup")] == [8, 9]
    assert words(steps, "namespaces")[0] == (kernel.NR_SETNS, 7, kernel.CLONE_NEWNET)


def test_who_stands_on_layers_enters_them_first_and_opens_its_own_before_the_root_moves() -> None:
    """Their namespace would take it out of those that it had made; and from inside, the tmpfs has no name."""
    steps = isolate.Isolator([]).steps(isolate.shape({**BOX, "depth": 2, "layer": True}), 7, (), 9)

    assert stages(steps)[0] == "layers" and words(steps, "layers") == [(kernel.NR_SETNS, 9, kernel.CLONE_NEWNS)]
    assert stages(steps).index("layer") + 1 == stages(steps).index("root")
    assert layers.lower(2, isolate.SKELETON).encode() in words(steps, "overlay")[0][5]


def test_rights_are_given_up_last_and_the_filter_after_them() -> None:
    """The filter forbids what comes before it."""
    rights = words(isolate.Isolator([]).steps(isolate.shape(BOX), 7, ()), "rights")

    assert [each[1:] for each in rights[:-3]] == [(kernel.PR_CAPBSET_DROP, each) for each in kernel.CAPABILITIES]
    assert [each[0] for each in rights[-3:]] == [kernel.NR_CAPSET, kernel.NR_PRCTL, kernel.NR_SECCOMP]
    assert rights[-2] == (kernel.NR_PRCTL, kernel.PR_SET_DUMPABLE, 0)


def test_a_rehearsal_leaves_out_what_nothing_undoes() -> None:
    """A template without rights would fork sandboxes that cannot be made."""
    steps = isolate.harmless(isolate.Isolator(["/usr"]).steps(isolate.shape(BOX), 7, (8,)))

    assert stages(steps) == [stage for stage in ORDER if stage not in ("user namespace", "rights")]


@pytest.mark.parametrize("error", [OSError(1, "refused"), ValueError("no such limit"), OverflowError("too large")])
def test_any_failure_is_raised_with_its_stage_and_ends_it(error: Exception) -> None:
    """Nothing ever goes on with less; whoever reads the message learns what this host refuses."""

    def fail() -> None:
        raise error

    with pytest.raises(isolate.Failed, match="^tmpfs: ") as caught:
        isolate.take([[("root", os.getpid, ())], [("tmpfs", fail, ()), ("proc", pytest.fail, ("it went on",))]])

    assert caught.value.__context__ is error


def test_a_system_call_that_fails_is_raised_with_its_errno() -> None:
    """Whether it may pass is decided by it."""
    with pytest.raises(isolate.Failed, match="^overlay: ") as caught:
        isolate.take([[("overlay", kernel.bare, (kernel.NR_SETNS, -1, 0))]])

    assert isinstance(caught.value.__context__, OSError) and caught.value.__context__.errno == errno.EBADF


def test_a_file_of_the_kernels_is_written_and_closed(tmp_path: Path) -> None:
    """And one that is not there is a failure."""
    path = tmp_path / "map"
    path.touch()
    before = os.listdir("/proc/self/fd")
    isolate.take([[("user namespace", isolate.fill, (os.fsencode(path), b"0 0 1"))]])

    assert path.read_bytes() == b"0 0 1" and os.listdir("/proc/self/fd") == before
    with pytest.raises(isolate.Failed, match="No such file"):
        isolate.take([[("user namespace", isolate.fill, (b"/proc/nowhere", b""))]])


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
