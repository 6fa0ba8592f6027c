"""What sandboxes could leave on a machine, seen from outside and without asking a node.

Other nodes may live beside ours and are none of our business, so what counts is what has lost its node. A sandbox's
process lives in a pid namespace below ours and has a launcher and a node above it; without them it is an orphan.
Control groups carry the pid and the start time of their node in their name. And what our own node had below it before
it ended is looked for by pid and start time, which together name one process for ever.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OURS = "hotbed"
_RUN = re.compile(r"hotbed-(\d+)-(\d+)-")
_LOOK_EVERY_S = 0.05
_KEEPERS = 2  # a launcher and a node

Named = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process: its number and start, its parent, whether it lives in a namespace below ours."""

    pid: int
    start: int
    parent: int
    nested: bool

    @property
    def name(self) -> Named:
        """What names it for ever."""
        return self.pid, self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Leavings:
    """What has lost its node."""

    processes: frozenset[Named]
    mounts: int
    cgroups: frozenset[str]


def look() -> Leavings:
    """See what lies around now."""
    alive = processes()
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return Leavings(
        processes=frozenset(process.name for process in orphans(alive)),
        mounts=sum(_OURS in line for line in mounts),
        cgroups=frozenset(abandoned_cgroups(alive)),
    )


def processes() -> dict[int, Process]:
    """Every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = _process(int(entry))
            except (OSError, IndexError):
                continue  # it ended while we looked
    return found


def _process(pid: int) -> Process:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    pids = next((line for line in status if line.startswith("NSpid:")), "").split()[1:]
    return Process(pid=pid, start=int(fields[19]), parent=int(fields[1]), nested=len(pids) > 1)


def nested_processes() -> list[int]:
    """Processes in pid namespaces below ours: templates, and all that sandboxes run."""
    return [process.pid for process in processes().values() if process.nested]


def orphans(alive: dict[int, Process]) -> Iterator[Process]:
    """Processes of ours in namespaces below, with no node above them."""
    for process in alive.values():
        if process.nested and len(_keepers(process, alive)) < _KEEPERS and _is_ours(process.pid):
            yield process


def _keepers(process: Process, alive: dict[int, Process]) -> list[Process]:
    """The ancestors in our own namespace, init excepted."""
    found = []
    above = alive.get(process.parent)
    while above is not None and above.pid != 1:
        if not above.nested:
            found.append(above)
        above = alive.get(above.parent)
    return found


def _is_ours(pid: int) -> bool:
    try:
        return _OURS.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def abandoned_cgroups(alive: dict[int, Process]) -> Iterator[str]:
    """Control groups named for a node that is no more."""
    names = {process.name for process in alive.values()}
    for path, _, _ in os.walk("/sys/fs/cgroup"):
        run = _RUN.match(os.path.basename(path))
        if run and (int(run[1]), int(run[2])) not in names:
            yield path


def node_pid(client: Any) -> int | None:
    """The process at the other end of a client's Unix socket (man 7 unix, SO_PEERCRED); None over TCP."""
    connection: socket.socket = client.link.hold().connection
    if connection.family != socket.AF_UNIX:
        return None
    pid: int = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return pid


def family(top: int | None) -> frozenset[Named]:
    """A node and everything below it."""
    alive = processes()
    return frozenset(
        process.name
        for process in alive.values()
        if process.pid == top or any(above.pid == top for above in _keepers(process, alive))
    )


def wait_clean(before: Leavings, node: frozenset[Named], *, timeout_s: float) -> dict[str, int]:
    """What is left once that is nothing or time is up. `node` is the family of a node that should have ended."""
    deadline = time.monotonic() + timeout_s
    while True:
        names = {process.name for process in processes().values()}
        more = excess(before, look())
        more["processes"] += len(node & names)
        if not any(more.values()) or time.monotonic() > deadline:
            return more
        time.sleep(_LOOK_EVERY_S)


def wait_same(before: Leavings, *, timeout_s: float) -> dict[str, int]:
    """How much more lies around than before, once that is nothing or time is up."""
    return wait_clean(before, frozenset(), timeout_s=timeout_s)


def excess(before: Leavings, now: Leavings) -> dict[str, int]:
    """What is there now and was not before."""
    return {
        "processes": len(now.processes - before.processes),
        "mounts": max(0, now.mounts - before.mounts),
        "cgroups": len(now.cgroups - before.cgroups),
    }
