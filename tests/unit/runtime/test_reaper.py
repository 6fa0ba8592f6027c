"""A run's leavings carry a name from which a later run knows that they are nobody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotbed.runtime import reaper
from hotbed.runtime.groups import name_of_run, start_time_of


def dead_name() -> str:
    """The name of a run whose process has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = start_time_of(process.pid)
    assert started is not None and process.stdin is not None
    process.stdin.close()
    process.wait()
    return name_of_run("00000000", process.pid, started)


def test_living_run_is_left_alone(tmp_path: Path) -> None:
    """Two nodes on one machine do not sweep each other."""
    run = reaper.Run.begin(str(tmp_path))

    reaper.sweep(str(tmp_path))

    assert run.directory.is_dir()
    run.end()
    run.end()
    assert not run.directory.exists()


def test_directory_of_a_dead_run_is_removed(tmp_path: Path) -> None:
    """Whatever killed it."""
    left = tmp_path / dead_name()
    (left / "root-1").mkdir(parents=True)

    assert reaper.sweep(str(tmp_path)) >= 1
    assert not left.exists()


def test_what_another_user_left_is_not_even_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of root's cannot be removed by anybody else: a node that waited for each would never start."""
    left, group = tmp_path / dead_name(), tmp_path / "groups" / dead_name()
    left.mkdir()
    group.mkdir(parents=True)
    monkeypatch.setattr("hotbed.runtime.linux.cgroups.parse", lambda *_: ({}, tmp_path / "groups"))
    monkeypatch.setattr(os, "geteuid", lambda: group.stat().st_uid + 1)

    assert reaper.sweep(str(tmp_path)) == 0
    assert left.is_dir() and group.is_dir()


def test_same_number_with_another_start_is_another_process() -> None:
    """Process numbers are used again."""
    own = start_time_of(os.getpid())
    assert own is not None

    assert not reaper.is_abandoned(name_of_run("00000000", os.getpid(), own))
    assert reaper.is_abandoned(name_of_run("00000000", os.getpid(), own - 1))


def test_names_of_others_are_not_ours_to_judge(tmp_path: Path) -> None:
    """Only what we named is removed."""
    for name in ("hotbed", "hotbed-notes", "hotbed-1-2", "other-1-2-00000000"):
        (tmp_path / name).mkdir()

    reaper.sweep(str(tmp_path))

    assert len(list(tmp_path.iterdir())) == 4


def test_roots_are_given_once_each(tmp_path: Path) -> None:
    """Two templates never share a mount point."""
    run = reaper.Run.begin(str(tmp_path))

    assert len({run.new_root(), run.new_root()}) == 2
    run.end()
