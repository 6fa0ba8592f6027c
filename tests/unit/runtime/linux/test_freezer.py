"""Freezing with the cgroup v2 freezer, on a directory that stands for one; the real one is in tests/conformance."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.runtime.linux import cgroups, freezer
from hotbed.runtime.linux.freezer import Freeze, Freezer


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A group whose processes are frozen as soon as they are told to be."""
    made = tmp_path / "box"
    made.mkdir()
    for name, text in (("cgroup.freeze", "0"), ("cgroup.procs", "7\n"), ("cgroup.events", "populated 1\nfrozen 1\n")):
        (made / name).write_text(text)
    return made


def test_a_v2_group_is_frozen_itself(group: Path) -> None:
    """No process is moved."""
    freeze = Freeze(Freezer(own=True), "name", group, lambda: [7])

    freeze.begin()
    assert (group / "cgroup.freeze").read_text() == "1"
    freeze.end()
    freeze.remove()

    assert (group / "cgroup.freeze").read_text() == "0" and group.exists()


def test_elsewhere_a_group_is_made_and_filled(group: Path, tmp_path: Path) -> None:
    """Frozen before anybody comes, and until a look finds nobody outside."""
    looks = iter([[8], [8, 9], [9]])  # the file of the stand-in holds only who came last
    freeze = Freeze(Freezer(own=False, root=tmp_path), "box", group, lambda: next(looks))

    freeze.begin()

    assert (group / "cgroup.procs").read_text().split() == ["9"]
    assert next(looks, None) is None


def test_what_does_not_freeze_is_thawed_again(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half frozen is neither."""
    monkeypatch.setattr(freezer, "_DEADLINE_S", 0.01)
    (group / "cgroup.events").write_text("populated 1\nfrozen 0\n")

    with pytest.raises(TimeoutError):
        Freeze(Freezer(own=True), "name", group, list).begin()

    assert (group / "cgroup.freeze").read_text() == "0"


def test_without_groups_there_is_nothing_to_freeze_with() -> None:
    """The agent's signals have to do."""
    assert freezer.find(cgroups.Layout(kind="none")) is None
    assert freezer.find(cgroups.Layout(kind="v2")) == Freezer(own=True)


def test_memory_is_taken_back_where_the_kernel_can_be_asked(tmp_path: Path) -> None:
    """By either version's file; else nothing is claimed."""
    assert freezer.reclaim(tmp_path) is None
    (tmp_path / "memory.current").write_text("4096")
    (tmp_path / "memory.reclaim").write_text("")

    assert freezer.reclaim(tmp_path) == 0
    assert (tmp_path / "memory.reclaim").read_text() == "4096"
