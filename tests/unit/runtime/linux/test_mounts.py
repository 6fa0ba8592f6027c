"""Mounts on the host's side, made for real in a throw-away namespace."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from hotbed.guest import kernel
from hotbed.runtime.linux import mounts
from tests.unit.guest.in_namespace import in_user_namespace


def test_sealed_tree_cannot_be_written_in_any_of_its_mounts(tmp_path: Path) -> None:
    """A bind is recursive, and so must its seal be."""

    def attempt() -> bool:
        mounts.make_private()
        mounts.tmpfs(str(tmp_path), "size=1m")
        for name in ("tree/inner", "seen"):
            os.makedirs(tmp_path / name)
        mounts.tmpfs(str(tmp_path / "tree/inner"), "size=1m")
        mounts.bind(str(tmp_path / "tree"), str(tmp_path / "seen"))
        mounts.seal(str(tmp_path / "seen"))
        (tmp_path / "tree/inner/file").write_text("still writable at its own place")
        return all(refuses_writes(tmp_path / "seen" / name) for name in ("file", "inner/file"))

    assert in_user_namespace(attempt, kernel.CLONE_NEWNS)


def test_new_root_hides_the_old_one(tmp_path: Path) -> None:
    """Nothing of the host is left by name."""

    def attempt() -> bool:
        mounts.make_private()
        mounts.tmpfs(str(tmp_path), "size=1m")
        (tmp_path / "only").touch()
        mounts.enter_root(str(tmp_path))
        return os.listdir("/") == ["only"] and os.getcwd() == "/"

    assert in_user_namespace(attempt, kernel.CLONE_NEWNS)


def refuses_writes(path: Path) -> bool:
    """Whether the filesystem there is read-only."""
    try:
        path.write_text("x")
    except OSError as error:
        return error.errno == errno.EROFS
    return False
