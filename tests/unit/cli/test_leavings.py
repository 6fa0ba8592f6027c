"""Counting what could be left over."""

from __future__ import annotations

import os
from dataclasses import replace

from hotbed.cli import leavings
from hotbed.cli.leavings import MemoryWatch, excess, look, used_mib, wait_same


def test_machine_is_the_same_as_itself() -> None:
    """Nothing is more than a moment ago."""
    now = look()

    assert not any(excess(now, now).values())


def test_what_is_new_is_counted() -> None:
    """And what went away meanwhile is not held against it."""
    before = look()
    now = replace(before, processes=before.processes | {-1}, mounts=before.mounts + 2, cgroups=before.cgroups | {"new"})

    assert excess(before, now) == {"processes": 1, "mounts": 2, "cgroups": 1}
    assert not any(excess(now, before).values())


def test_what_stays_is_reported_when_time_is_up() -> None:
    """Instead of waiting for ever."""
    before = look()

    assert wait_same(replace(before, mounts=before.mounts - 1), timeout_s=0)["mounts"] == 1


def test_own_process_is_not_nested() -> None:
    """Only what lives in a pid namespace below ours."""
    assert os.getpid() not in leavings.nested_processes()


def test_peak_is_seen() -> None:
    """Memory that was taken and given back."""
    assert used_mib() > 0
    with MemoryWatch() as watch:
        held = bytearray(64 << 20)
        held[::4096] = b"x" * len(held[::4096])
        while watch.peak_mib < 32:
            pass
        del held

    assert watch.peak_mib >= 32
