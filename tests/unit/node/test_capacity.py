"""How many sandboxes a machine should hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.node.capacity import FEWEST, default_max_sandboxes, runnable_threads, usable_cores, usable_memory_mib


def test_memory_and_cores_both_bound_it() -> None:
    """Much of one does not make up for little of the other."""
    assert default_max_sandboxes(memory_mib=12_000, cores=64) == 1000
    assert default_max_sandboxes(memory_mib=1 << 20, cores=2) == 1024
    assert default_max_sandboxes(memory_mib=1, cores=1) == FEWEST


def test_the_cgroup_counts_where_it_allows_less(tmp_path: Path) -> None:
    """In a container, the machine's memory is not ours."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8192000 kB\nMemAvailable: 4096000 kB\n")
    assert usable_memory_mib(meminfo, tmp_path) == 4000

    (tmp_path / "memory.max").write_text("max\n")
    assert usable_memory_mib(meminfo, tmp_path) == 4000

    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    assert usable_memory_mib(meminfo, tmp_path) == 1024


def test_this_machine_can_be_asked() -> None:
    """The real files have the form we read."""
    assert usable_cores() >= 1
    assert usable_memory_mib() > 0
    assert runnable_threads() >= 1


@pytest.mark.parametrize(
    ("told", "count"), [("0.20 0.18 0.12 3/180 11206\n", 3), ("", 0), ("what a container shows instead", 0)]
)
def test_how_many_threads_want_a_cpu_is_none_where_nobody_says(tmp_path: Path, told: str, count: int) -> None:
    """Who does not know keeps nobody waiting."""
    loadavg = tmp_path / "loadavg"
    assert runnable_threads(loadavg) == 0

    loadavg.write_text(told)
    assert runnable_threads(loadavg) == count
