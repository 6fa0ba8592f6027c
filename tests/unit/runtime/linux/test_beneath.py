"""Names that lead nowhere but into their own tree."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.runtime.linux import beneath
from hotbed.runtime.linux.beneath import BadName, Tree, split


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    """A folder's descriptor."""
    (tmp_path / "tree").mkdir()
    fd = os.open(tmp_path / "tree", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_a_name_is_taken_from_the_top_of_the_tree() -> None:
    """Whether it begins with a slash or not."""
    assert split("/a/./b//c") == split("a/b/c") == ("a", "b", "c")


@pytest.mark.parametrize("name", ["..", "a/../b", "/..", "a/..", "a\0b", "x" * 5000])
def test_a_name_that_climbs_or_cannot_be_is_refused(name: str) -> None:
    """No honest image has one."""
    with pytest.raises(BadName):
        split(name)


@pytest.mark.parametrize("target", ["/", "..", "../../..", "/../.."])
def test_a_link_is_followed_inside_the_tree_only(tmp_path: Path, root: int, target: str) -> None:
    """What is made through it is in the tree."""
    os.symlink(target, tmp_path / "tree" / "out")

    os.mkdir("made", dir_fd=Tree(root).folder(("out",)))

    assert (tmp_path / "tree/made").is_dir() and not (tmp_path / "made").exists()


def test_a_link_to_the_host_is_the_trees_own_folder(tmp_path: Path, root: int) -> None:
    """An absolute target starts at the tree's top."""
    (tmp_path / "tree/etc").mkdir()
    os.symlink("/etc", tmp_path / "tree/e")

    os.mkdir("made", dir_fd=Tree(root).folder(("e",)))

    assert (tmp_path / "tree/etc/made").is_dir()


def test_a_link_to_a_process_leads_nowhere(tmp_path: Path, root: int) -> None:
    """There is no proc in a tree, and a magic link would not be followed."""
    os.symlink("/proc/self/cwd", tmp_path / "tree/magic")

    with pytest.raises(BadName):
        Tree(root).folder(("magic",))


def test_missing_folders_are_made_and_told(tmp_path: Path, root: int) -> None:
    """Whoever described none of them wants to know."""
    made: list[beneath.Parts] = []

    Tree(root, made.append).folder(("a", "b"))

    assert (tmp_path / "tree/a/b").is_dir() and made == [("a",), ("a", "b")]


def test_depth_costs_neither_recursion_nor_descriptors(tmp_path: Path, root: int) -> None:
    """As deep as a name can be, made at once and removed."""
    tree, soft = Tree(root), resource.getrlimit(resource.RLIMIT_NOFILE)
    tree.folder(("d",) * 1500)
    tree.close()

    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 64, soft[1]))
    try:
        beneath.empty(root)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, soft)

    assert os.listdir(tmp_path / "tree") == []


def test_a_file_is_no_folder(tmp_path: Path, root: int) -> None:
    """The image is broken, not half unpacked."""
    (tmp_path / "tree/f").touch()

    with pytest.raises(BadName, match="no folder"):
        Tree(root).folder(("f", "g"))


def test_removal_follows_no_link(tmp_path: Path, root: int) -> None:
    """However deep, whatever the modes."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    deep = tmp_path / "tree/a/b"
    deep.mkdir(parents=True)
    os.symlink(tmp_path / "kept", deep / "link")
    (deep / "file").touch()
    deep.chmod(0)

    Tree(root).remove(("a",))

    assert os.listdir(tmp_path / "tree") == [] and (tmp_path / "kept/file").exists()


def test_many_folders_take_few_descriptors(root: int) -> None:
    """A tree may have a million."""
    tree = Tree(root)
    before = len(os.listdir("/proc/self/fd"))

    for number in range(200):
        tree.folder((f"d{number}",))

    assert len(os.listdir("/proc/self/fd")) - before <= 40
    tree.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_whiteout_is_told_from_other_entries(tmp_path: Path, root: int) -> None:
    """It is how an overlay hides what a lower layer has."""
    Tree(root).white_out(("gone",))

    assert beneath.is_whiteout((tmp_path / "tree/gone").lstat())
    assert not beneath.is_whiteout(os.stat("/dev/null"))
