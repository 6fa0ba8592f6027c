"""Control groups: finding what this host lets us write, and making groups for sandboxes below our own.

Four layouts, best first. *v2*: one tree with memory, pids and cpu delegated to us; its rule that inner groups hold no
processes makes us move into a leaf of our own first. *hybrid*: limits in v1 hierarchies, a v2 tree without controllers
beside them. *v1*: limits only. *none*: nothing is writable; rlimits and the agent's own watch stand in. We always nest
below the group we were started in, for the limits that hold us must hold what we start.

Everything here may block for many milliseconds (the kernel's cgroup lock waits for RCU), so the pool in
`runtime/groups.py` calls it from a thread of its own.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["v2", "hybrid", "v1", "none"]
CONTROLLERS = ("memory", "pids", "cpu")
_MIB = 1 << 20
_CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which tree serves which controller, and our own group in it."""

    kind: Kind
    controllers: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def roots(self) -> tuple[Path, ...]:
        """The directories below which we make groups, each once."""
        return tuple(dict.fromkeys(self.controllers.values()))


def parse(cgroup: str, mountinfo: str) -> tuple[dict[str, Path], Path | None]:
    """Our group's directory per v1 controller, and in the v2 tree, from the two files of /proc/self."""
    own: dict[str, str] = {}
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    v1: dict[str, Path] = {}
    v2: Path | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        root, mountpoint = left.split(" ")[3:5]
        if kind == "cgroup2" and "" in own:
            v2 = _below(mountpoint, root, own[""])
        elif kind == "cgroup":
            v1.update({name: _below(mountpoint, root, own[name]) for name in options.split(",") if name in own})
    return v1, v2


def _below(mountpoint: str, root: str, path: str) -> Path:
    """Where a group is seen through a mount that may show only part of the hierarchy."""
    inside = path[len(root) :] if root != "/" and path.startswith(root) else path
    return Path(mountpoint, inside.lstrip("/"))


def discover() -> Layout:
    """What this process can use, found by trying."""
    v1, v2 = parse(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if v2 is not None and "memory" in _available(v2):
        return _discover_v2(v2)
    found, missing = {}, {}
    for name in CONTROLLERS:
        problem = trial(v1[name]) if name in v1 else "not mounted"
        if problem:
            missing[name] = problem
        else:
            found[name] = v1[name]
    if "memory" not in found:
        return Layout(kind="none", missing=missing)
    return Layout(kind="hybrid" if v2 is not None else "v1", controllers=found, missing=missing)


def _discover_v2(own: Path) -> Layout:
    problem = trial(own)
    if problem:
        return Layout(kind="none", missing=dict.fromkeys(CONTROLLERS, problem))
    available = _available(own)
    return Layout(
        kind="v2",
        controllers={name: own for name in CONTROLLERS if name in available},
        missing={name: "not delegated" for name in CONTROLLERS if name not in available},
    )


def _available(directory: Path) -> list[str]:
    try:
        return (directory / "cgroup.controllers").read_text().split()
    except OSError:
        return []


def trial(directory: Path) -> str | None:
    """Why no group can be made and entered below this directory; None if it can."""
    probe = directory / f"hotbed-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as error:
        return f"{directory}: {error.strerror}"
    try:
        os.close(os.open(probe / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
    except OSError as error:
        return f"{probe}: {error.strerror}"
    finally:
        remove(probe)
    return None


def occupy_leaf(own: Path, name: str, pids: Iterable[int]) -> Path:
    """v2: move ourselves into a leaf and turn the controllers on beside it. Fails (EBUSY) if anyone else stays."""
    leaf = own / name
    leaf.mkdir(exist_ok=True)
    for pid in pids:
        write(leaf / "cgroup.procs", str(pid))
    wanted = [name for name in CONTROLLERS if name in _available(own)]
    write(own / "cgroup.subtree_control", " ".join("+" + name for name in wanted))
    return leaf


def current(layout: Layout) -> Path | None:
    """The group that this process is in now, in a tree that the layout uses; None where it uses none."""
    v1, v2 = parse(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if layout.kind == "v2":
        return v2
    return next((v1[name] for name in layout.controllers if name in v1), None)


def limit_settings(kind: Kind, controller: str, *, memory_mib: int, pids: int, cpus: float) -> list[tuple[str, str]]:
    """The files to write for one controller, in an order that works from any earlier setting."""
    quota = str(int(cpus * _CPU_PERIOD_US))
    if controller == "pids":
        return [("pids.max", str(pids))]
    if controller == "cpu":
        return [("cpu.max", f"{quota} {_CPU_PERIOD_US}")] if kind == "v2" else [("cpu.cfs_quota_us", quota)]
    size = str(memory_mib * _MIB)
    if kind == "v2":
        return [("memory.max", size), ("memory.swap.max", "0")]
    return [
        ("memory.memsw.limit_in_bytes", "-1"),
        ("memory.limit_in_bytes", size),
        ("memory.memsw.limit_in_bytes", size),
    ]


_OPTIONAL = ("memory.memsw.limit_in_bytes", "memory.swap.max")  # absent without swap accounting


def apply(directory: Path, settings: Iterable[tuple[str, str]]) -> None:
    """Write limits. A file for swap may be missing."""
    for name, value in settings:
        try:
            write(directory / name, value)
        except OSError as error:
            if name not in _OPTIONAL or error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM):
                raise


def write(path: Path, text: str) -> None:
    """One write, so that the kernel's answer is ours (a buffered file hides it)."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def members(directory: Path) -> list[int]:
    """The processes in a group."""
    try:
        return [int(pid) for pid in (directory / "cgroup.procs").read_text().split()]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):  # gone before it was opened, or before it was read
            return []
        raise


def remove(directory: Path, *, patience_s: float = 0.5) -> bool:
    """Remove an empty group, waiting for processes that are on their way out. Whether it is gone."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            directory.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)


def kill_all(directory: Path) -> None:
    """Kill every process in a group and below, at once where the kernel offers it."""
    for group in [Path(top) for top, _, _ in os.walk(directory)]:  # another node's sweep may take it from under us
        try:
            write(group / "cgroup.kill", "1")
        except OSError:
            for pid in members(group):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    continue
