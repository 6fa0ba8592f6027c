"""What rollouts heard, kept."""

from __future__ import annotations

import os
from pathlib import Path

from hotbed.node.recordings import Recorded, Recordings


def test_answers_are_read_as_they_were_kept(tmp_path: Path) -> None:
    """By their keys, and by nobody but the node."""
    found = Recordings(tmp_path / "r")
    name = found.name(Recorded(id="rollout_1", tenant="t"))
    found.keep(name, "a-1", b"one")
    found.keep(name, "a-2", b"two")

    assert dict(found.read(name)) == {"a-1": b"one", "a-2": b"two"}
    assert list(found.read("other")) == [] and (tmp_path / "r" / name).stat().st_mode & 0o077 == 0


def test_a_group_has_one_recording_and_tenants_have_their_own(tmp_path: Path) -> None:
    """Whatever they are called."""
    name = Recordings(tmp_path).name

    assert name(Recorded(id="1", tenant="t", group="g")) == name(Recorded(id="2", tenant="t", group="g"))
    others = [Recorded(id="g", tenant="t"), Recorded(id="1", tenant="u", group="g"), Recorded(id="1", tenant="t")]
    assert len({name(Recorded(id="1", tenant="t", group="g")), *map(name, others)}) == 4


def test_old_ones_make_room(tmp_path: Path) -> None:
    """When another begins."""
    found = Recordings(tmp_path, days=1)
    found.keep("old", "a-1", b"one")
    os.utime(tmp_path / "old", (1, 1))
    found.keep("new", "a-1", b"one")

    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_disk_that_refuses_costs_no_rollout(tmp_path: Path) -> None:
    """It is said in the log."""
    (tmp_path / "file").write_bytes(b"")
    Recordings(tmp_path / "file").keep("new", "a-1", b"one")
