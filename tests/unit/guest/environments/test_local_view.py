"""An author's machine shows env.py what a worker would, to a child only."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from hotbed.guest.environments import local_view


def test_a_child_sees_the_places_and_nobody_else_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The directory read-only, the workspace empty and writable, the rest as it was, the exit code handed on."""
    (tmp_path / "TASK.md").write_text("task")

    def play() -> int:
        Path("/workspace/new").write_text("x")
        seen = [Path("/env/TASK.md").read_text(), os.listdir("/workspace"), os.path.exists(tmp_path), os.getcwd()]
        try:
            Path("/env/new").write_text("x")
        except OSError:
            seen.append("read-only")
        os.write(1, repr(seen).encode())
        return 7

    assert local_view.run(str(tmp_path), play) == 7
    assert capfd.readouterr().out == repr(["task", ["new"], True, os.getcwd(), "read-only"])
    assert os.listdir(tmp_path) == ["TASK.md"]


def die() -> int:
    """As a process that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_an_end_by_exit_is_handed_on(tmp_path: Path) -> None:
    """As argparse ends a program, or as an author does."""
    assert local_view.run(str(tmp_path), lambda: sys.exit(3)) == 3
    assert local_view.run(str(tmp_path), die) == 128 + signal.SIGKILL


def test_a_kernel_that_refuses_only_takes_the_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author then reads which path is missing."""

    def refuse(flags: int) -> None:
        raise PermissionError

    monkeypatch.setattr("hotbed.guest.kernel.unshare", refuse)

    assert local_view.run(str(tmp_path), lambda: int(os.path.exists("/env/env.py"))) == 0
