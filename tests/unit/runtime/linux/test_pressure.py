"""Memory, as the kernel tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.runtime.linux.pressure import Memory, memory_is_short


def account(directory: Path, avg10: str) -> Path:
    """A pressure file."""
    file = directory / "memory.pressure"
    line = f"avg10={avg10} avg60=0.00 avg300=0.00 total=1\n"
    file.write_text(f"some {line}full {line}")
    return file


def meminfo(directory: Path, available_kib: int) -> Path:
    """A machine's."""
    file = directory / "meminfo"
    file.write_text(f"MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n")
    return file


@pytest.mark.parametrize(("avg10", "short"), [("0.00", False), ("9.99", False), ("42.10", True)])
def test_much_time_lost_is_short(tmp_path: Path, avg10: str, short: bool) -> None:
    """By the line of those who waited at all."""
    assert memory_is_short(account(tmp_path, avg10)) is short


def test_no_account_is_no_shortage(tmp_path: Path) -> None:
    """Older kernels keep none."""
    assert memory_is_short(tmp_path / "none") is False


def test_a_group_may_be_short_where_the_machine_is_not(tmp_path: Path) -> None:
    """In a container with a limit, the machine's account says nothing."""
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text("max\n")
    account(group, "50.00")
    memory = Memory(group, pressure=account(tmp_path, "0.00"), meminfo=meminfo(tmp_path, 1 << 20))

    assert memory.is_short()


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
)
def test_what_is_available_is_the_least_of_machine_and_groups(tmp_path: Path, names: tuple[str, str]) -> None:
    """A group above ours may be the tightest; page cache counts as available."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for directory, limit in ((outer, 600 << 20), (inner, 4 << 30)):
        (directory / names[0]).write_text(f"{limit}\n")
        (directory / names[1]).write_text(f"{400 << 20}\n")
        (directory / "memory.stat").write_text(f"anon 5\nactive_file {20 << 20}\ninactive_file {80 << 20}\n")

    assert Memory(inner, meminfo=meminfo(tmp_path, 8 << 20)).available_mib() == 300
    assert Memory(inner, meminfo=meminfo(tmp_path, 100 << 10)).available_mib() == 100
    assert Memory(None, meminfo=meminfo(tmp_path, 5 << 10)).available_mib() == 5
