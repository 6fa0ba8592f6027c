"""What sandboxes could leave on a machine, counted from outside and without asking the node."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_OURS = "hotbed"
_LOOK_EVERY_S = 0.05
_SAMPLE_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Leavings:
    """Processes in pid namespaces below ours, our mounts, and control groups of ours."""

    processes: frozenset[int]
    mounts: int
    cgroups: frozenset[str]


def look() -> Leavings:
    """Count now."""
    return Leavings(
        processes=frozenset(nested_processes()),
        mounts=len(Path("/proc/self/mountinfo").read_text().splitlines()),
        cgroups=frozenset(our_cgroups()),
    )


def nested_processes() -> list[int]:
    """Processes that have a pid of their own in a namespace below ours: templates, and all that sandboxes run."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            status = Path(f"/proc/{entry}/status").read_text()
        except OSError:
            continue  # it ended while we looked
        pids = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
        if len(pids.split()) > 2:
            found.append(int(entry))
    return found


def our_cgroups() -> list[str]:
    """Control groups that carry our name, wherever this machine mounts them."""
    return [path for top in ("/sys/fs/cgroup",) for path, folders, _ in os.walk(top) if _OURS in os.path.basename(path)]


def wait_same(before: Leavings, *, timeout_s: float) -> dict[str, int]:
    """How much more there is than before, once that is nothing or time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        more = excess(before, look())
        if not any(more.values()) or time.monotonic() > deadline:
            return more
        time.sleep(_LOOK_EVERY_S)


def excess(before: Leavings, now: Leavings) -> dict[str, int]:
    """What is there now and was not before."""
    return {
        "processes": len(now.processes - before.processes),
        "mounts": max(0, now.mounts - before.mounts),
        "cgroups": len(now.cgroups - before.cgroups),
    }


class MemoryWatch:
    """The most memory that the machine had in use at once, above what it had when the watch began."""

    def __init__(self) -> None:
        self.peak_mib = 0
        self._first = used_mib()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-watch", daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_EVERY_S):
            self.peak_mib = max(self.peak_mib, used_mib() - self._first)


def used_mib() -> int:
    """Memory that is not available to a new program."""
    values = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    kib = {name: int(value.split()[0]) for name, value in values.items()}
    return (kib["MemTotal"] - kib["MemAvailable"]) // 1024
