"""The node's side of live fork, on a real backend: what it holds, frees, and survives."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from hotbed.errors import Error, SandboxGone, SnapshotUnsupported
from hotbed.runtime.base import BoxRequest
from hotbed.runtime.snapshots import LiveFork, _error_of
from tests.support.forkable import Forkable, run_with


def test_a_snapshot_is_counted_until_it_is_freed() -> None:
    """Its bytes too; freeing twice is no error; what was restored lives on."""

    async def work(forkable: Forkable) -> None:
        original = await forkable.environment()
        await original.reset()
        snapshot = await forkable.snapshot(original, verify=False)
        copy = await forkable.restore(snapshot, verify=False, parked=False)
        assert (len(forkable.livefork), forkable.livefork.size) == (1, snapshot.size)
        assert snapshot.size > snapshot.layer_bytes
        await forkable.livefork.release(snapshot)
        await forkable.livefork.release(snapshot)
        assert (len(forkable.livefork), forkable.livefork.size) == (0, 0)
        assert (await copy.step())[0] == 1
        with pytest.raises(Error):
            await forkable.restore(snapshot)
        await copy.kill()
        assert not [fd for fd in os.listdir("/proc/self/fd") if "hotbed-layer" in _target(fd)]

    run_with(work)


def test_a_sandbox_that_was_not_made_for_it_is_refused() -> None:
    """And so is one of another template."""

    async def work(forkable: Forkable) -> None:
        original = await forkable.environment()
        await original.reset()
        original.box.request = BoxRequest()
        with pytest.raises(SnapshotUnsupported, match="not made"):
            await forkable.snapshot(original)

    run_with(work)


def test_a_keeper_that_is_killed_costs_what_it_held() -> None:
    """The next snapshot starts another one."""

    async def work(forkable: Forkable) -> None:
        original = await forkable.environment()
        await original.reset()
        snapshot = await forkable.snapshot(original, verify=False)
        keepers = [pid for pid in os.listdir("/proc") if pid.isdigit() and _is_keeper(int(pid), forkable)]
        assert len(keepers) == 1
        os.kill(int(keepers[0]), 9)
        while forkable.livefork.is_alive(snapshot):
            await asyncio.sleep(0.005)
        again = await forkable.snapshot(original)
        assert (await (await forkable.restore(again)).step())[0] == 1

    run_with(work)


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # the one that listed them
        return ""


def _is_keeper(pid: int, forkable: Forkable) -> bool:
    """A child of the launcher that has no children: a template's middle process has one."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return parent == forkable.backend.launching.pid and not file.read().strip()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": "unsupported", "message": "a socket"}, SnapshotUnsupported),
        ({"error": "busy", "message": "it computes"}, SnapshotUnsupported),
        ({"error": "lost", "message": "it has ended"}, SandboxGone),
        ({"error": "lost", "message": "something"}, Error),
    ],
)
def test_the_keepers_errors_are_ours(answer: dict[str, Any], kind: type[Error]) -> None:
    """Each with its code."""
    assert isinstance(_error_of(answer), kind)


def test_closing_what_was_never_opened_is_no_error() -> None:
    """Most backends never copy anything."""

    async def nobody(_over: str) -> Any:
        raise AssertionError

    livefork = LiveFork(nobody)
    livefork.close()

    assert (len(livefork), livefork.size) == (0, 0)
