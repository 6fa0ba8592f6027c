"""Copying what a sandbox has put into its upper folder, whatever that is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hotbed.guest.template.treecopy import TreeCopy


def copied(source: Path, target: Path) -> TreeCopy:
    """Copy a folder into a new one."""
    target.mkdir()
    fds = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (source, target)]
    try:
        work = TreeCopy(*fds)
        work.run()
    finally:
        for fd in fds:
            os.close(fd)
    return work


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An empty folder to fill."""
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def test_content_modes_times_and_links_come_over(source: Path, tmp_path: Path) -> None:
    """Set-user-id bits too: they are worth nothing where they are mounted, and a program may look."""
    (source / "d/e").mkdir(parents=True)
    (source / "d/e/f").write_bytes(b"x" * 100_000)
    os.link(source / "d/e/f", source / "again")
    os.symlink("/nowhere/at all", source / "link")
    os.mkfifo(source / "fifo")
    os.chmod(source / "d/e/f", 0o4710)
    os.utime(source / "d", ns=(1, 2))

    work = copied(source, tmp_path / "target")

    there = tmp_path / "target"
    assert (there / "d/e/f").read_bytes() == b"x" * 100_000
    assert stat.S_IMODE((there / "d/e/f").stat().st_mode) == 0o4710
    assert (there / "d/e/f").stat().st_ino == (there / "again").stat().st_ino
    assert os.readlink(there / "link") == "/nowhere/at all"
    assert stat.S_ISFIFO((there / "fifo").lstat().st_mode)
    assert (there / "d").stat().st_mtime_ns == 2
    assert work.files == 6


def test_holes_stay_holes(source: Path, tmp_path: Path) -> None:
    """A terabyte that takes no room must take none in the copy."""
    with open(source / "sparse", "wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 30)
        file.write(b"data")

    copied(source, tmp_path / "target")

    found = (tmp_path / "target/sparse").stat()
    assert (found.st_size, found.st_blocks * 512 < 1 << 20) == (1 << 40, True)
    with open(tmp_path / "target/sparse", "rb") as file:
        file.seek(1 << 30)
        assert file.read(8) == b"data\0\0\0\0"


def test_a_symlink_is_never_followed(source: Path, tmp_path: Path) -> None:
    """Nor one that took a folder's place."""
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path, source / "up")
    os.symlink(tmp_path / "secret", source / "file")

    copied(source, tmp_path / "target")

    assert all(path.is_symlink() for path in (tmp_path / "target").iterdir())


@pytest.mark.slow
def test_depth_costs_neither_recursion_nor_descriptors(source: Path, tmp_path: Path) -> None:
    """Deeper than Python's stack, than a path may be long, and than descriptors may be many."""
    at = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)

    assert copied(source, tmp_path / "target").files == 3000

    for top in (source, tmp_path / "target"):
        flatten(top)


def flatten(top: Path) -> None:
    """Remove a tree that is too deep for who cleans up after the test."""
    os.chdir(top)
    try:
        while os.listdir("."):
            os.rename("d", top / "next")
            for name in os.listdir(top / "next"):
                os.rename(top / "next" / name, top / "d")
            os.rmdir(top / "next")
    finally:
        os.chdir("/")


def test_only_a_programs_own_attributes_come_over(source: Path, tmp_path: Path) -> None:
    """The overlay's notes about the old place mean nothing in the new one, but for what hides a folder below."""
    (source / "d").mkdir()
    try:
        for key in ("user.mine", "user.overlay.opaque", "user.overlay.origin"):
            os.setxattr(source / "d", key, b"y")
    except OSError:
        pytest.skip("no user attributes on this file system")

    copied(source, tmp_path / "target")

    assert sorted(os.listxattr(tmp_path / "target/d")) == ["user.mine", "user.overlay.opaque"]
