"""Finding groups: from the two files that tell where we are, in every layout there is."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hotbed.runtime.linux import cgroups

HYBRID = (
    "4:memory:/outer/me\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "27 1 254:0 / / rw - ext4 /dev/vda rw\n",
)
UNIFIED = (
    "0::/user.slice/user-1000.slice/run-1.scope\n",
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
)
CONTAINER = ("0::/\n", "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n")


def test_hybrid_layout_gives_each_controller_its_own_group() -> None:
    """Below the group we are in, never at a hierarchy's root."""
    v1, v2 = cgroups.parse(*HYBRID)

    assert v1["memory"] == Path("/sys/fs/cgroup/memory/outer/me")
    assert v1["cpu"] == Path("/sys/fs/cgroup/cpu")
    assert v2 == Path("/sys/fs/cgroup/unified")


def test_unified_layout_has_one_group() -> None:
    """systemd's, on most machines of today."""
    v1, v2 = cgroups.parse(*UNIFIED)

    assert v1 == {} and v2 == Path("/sys/fs/cgroup/user.slice/user-1000.slice/run-1.scope")


def test_part_of_a_hierarchy_is_seen_through_its_mount() -> None:
    """A container's cgroup mount shows its own subtree as the root."""
    assert cgroups.parse(*CONTAINER)[1] == Path("/sys/fs/cgroup")


@pytest.mark.parametrize("kind", ["v2", "hybrid", "v1"])
def test_limits_are_written_in_each_kinds_words(kind: cgroups.Kind) -> None:
    """The same three numbers."""
    settings = {
        name: dict(cgroups.limit_settings(kind, name, memory_mib=64, pids=9, cpus=0.5)) for name in cgroups.CONTROLLERS
    }

    assert settings["pids"] == {"pids.max": "9"}
    assert str(64 << 20) in settings["memory"].values()
    assert list(settings["cpu"].values())[0].split()[0] == "50000"


def test_missing_swap_accounting_is_no_failure(tmp_path: Path) -> None:
    """Many kernels have none; a missing memory limit is one."""
    (tmp_path / "memory.max").touch()

    cgroups.apply(tmp_path, [("memory.max", "1"), ("memory.swap.max", "0")])

    with pytest.raises(FileNotFoundError):
        cgroups.apply(tmp_path, [("memory.limit_in_bytes", "1")])


def test_group_that_cannot_be_removed_is_told(tmp_path: Path) -> None:
    """After some patience: processes on their way out still count."""
    (tmp_path / "group" / "below").mkdir(parents=True)

    assert not cgroups.remove(tmp_path / "group", patience_s=0.01)
    assert cgroups.remove(tmp_path / "group" / "below")
    assert cgroups.remove(tmp_path / "nowhere")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENODEV])
def test_a_group_that_another_node_has_taken_away_has_nobody(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Before its list was opened, or before it was read; what else goes wrong is told."""

    def gone(self: Path) -> str:
        raise OSError(number, "gone")

    def refused(self: Path) -> str:
        raise OSError(errno.EACCES, "refused")

    monkeypatch.setattr(Path, "read_text", gone)
    assert cgroups.members(Path("/nowhere")) == []

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(PermissionError):
        cgroups.members(Path("/nowhere"))


def test_this_host_is_one_of_the_known_layouts() -> None:
    """Found by trying, and nothing of the trial is left."""
    layout = cgroups.discover()

    assert set(layout.controllers) | set(layout.missing) >= set(cgroups.CONTROLLERS)
    assert not [path for root in layout.roots() for path in root.glob("hotbed-probe-*")]
