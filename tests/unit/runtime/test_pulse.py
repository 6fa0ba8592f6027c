"""The pulse writes while forks are asked for, and only then."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hotbed.runtime import pulse
from hotbed.runtime.pulse import Pulse


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A folder with a file that takes what is written."""
    (tmp_path / "cgroup.procs").write_bytes(b"")
    return tmp_path


def beats(group: Path) -> int:
    """How many there were."""
    return (group / "cgroup.procs").stat().st_size


def wait_for(group: Path, count: int) -> None:
    """Until there were so many; the test's own time limit bounds it."""
    while beats(group) < count:
        time.sleep(pulse.GAP_S)


def test_nothing_is_written_before_a_fork(group: Path) -> None:
    """An idle node is idle."""
    pulsing = Pulse(group)
    time.sleep(5 * pulse.GAP_S)
    pulsing.close()

    assert beats(group) == 0


def test_it_goes_on_for_a_while_and_rests(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And starts again with the next fork."""
    monkeypatch.setattr(pulse, "_GOES_ON_S", 3 * pulse.GAP_S)
    pulsing = Pulse(group)
    for _ in range(2):
        seen = beats(group)
        pulsing.beat()
        wait_for(group, seen + 1)
        while pulsing._wanted.is_set():
            time.sleep(pulse.GAP_S)
        rested = beats(group)
        time.sleep(5 * pulse.GAP_S)

        assert beats(group) == rested
    pulsing.close()


def test_what_is_written_names_the_writer(group: Path) -> None:
    """`0` is whoever writes it (Documentation/admin-guide/cgroup-v2.rst)."""
    pulsing = Pulse(group)
    pulsing.beat()
    wait_for(group, 1)
    pulsing.close()

    assert set((group / "cgroup.procs").read_bytes()) == set(b"0")


def test_without_groups_there_is_no_thread() -> None:
    """Nothing to keep fast."""
    pulsing = Pulse(None)
    pulsing.beat()
    pulsing.close()

    assert pulsing._thread is None


def test_group_that_is_gone_ends_it(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forks do not depend on it."""

    def refuse(fd: int, data: bytes) -> int:
        raise OSError("gone")

    monkeypatch.setattr(os, "write", refuse)
    pulsing = Pulse(group)
    pulsing.beat()
    assert pulsing._thread is not None
    pulsing._thread.join()
    pulsing.beat()
    pulsing.close()
