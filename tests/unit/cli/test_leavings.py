"""Seeing what could be left over."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from hotbed.cli import leavings
from hotbed.cli.leavings import Process, excess, family, look, node_pid, orphans, processes, wait_clean, wait_same
from hotbed.sdk.connect import connect

NOWHERE = 2**22 + 1  # above the largest pid there can be


def chain(*steps: bool) -> dict[int, Process]:
    """Processes below init, each the child of the one before; True is one in a namespace below ours."""
    rows = [Process(pid=1, start=0, parent=0, nested=False)]
    for nested in steps:
        pid = NOWHERE + len(rows)
        rows.append(Process(pid=pid, start=1, parent=rows[-1].pid, nested=nested))
    return {process.pid: process for process in rows}


def test_sandbox_with_a_launcher_and_a_node_above_it_is_nobodys_leaving() -> None:
    """However deep it is: other nodes may live beside ours."""
    assert list(orphans(chain(False, False, True, True))) == []


@pytest.mark.parametrize("steps", [(True,), (False, True)], ids=["alone", "with its launcher"])
def test_sandbox_that_lost_its_node_is_an_orphan(steps: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """But only if it is one of ours."""
    monkeypatch.setattr(leavings, "_is_ours", lambda _: True)
    assert len(list(orphans(chain(*steps)))) == 1

    monkeypatch.setattr(leavings, "_is_ours", lambda _: False)
    assert list(orphans(chain(*steps))) == []


def test_what_is_new_is_counted() -> None:
    """And what went away meanwhile is not held against it."""
    before = look()
    now = replace(
        before, processes=before.processes | {(-1, 0)}, mounts=before.mounts + 2, cgroups=before.cgroups | {"new"}
    )

    assert excess(before, now) == {"processes": 1, "mounts": 2, "cgroups": 1}
    assert not any(excess(now, before).values())


def test_what_stays_is_reported_when_time_is_up() -> None:
    """Instead of waiting for ever."""
    before = look()

    assert wait_same(replace(before, mounts=before.mounts - 1), timeout_s=0)["mounts"] == 1


def test_node_that_should_have_ended_is_counted_with_all_below_it() -> None:
    """Until it has."""
    asleep = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    node = family(asleep.pid)

    assert [pid for pid, _ in node] == [asleep.pid]
    assert wait_clean(look(), node, timeout_s=0)["processes"] == 1
    asleep.kill()
    asleep.wait()
    assert wait_clean(look(), node, timeout_s=5)["processes"] == 0


def test_own_process_is_seen_as_what_it_is() -> None:
    """In our own namespace, with its parent."""
    me = processes()[os.getpid()]

    assert (me.parent, me.nested) == (os.getppid(), False)
    assert os.getpid() not in leavings.nested_processes()


def test_group_of_a_node_that_lives_is_its_own_business() -> None:
    """The name says whose it is."""
    assert not {group for group in leavings.abandoned_cgroups(processes()) if f"hotbed-{os.getpid()}-" in group}


def test_node_is_known_by_the_other_end_of_its_socket(node_socket: str) -> None:
    """Without asking it."""
    with connect(unix_socket=node_socket) as client:
        assert node_pid(client) in processes()
