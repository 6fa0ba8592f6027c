"""Which users exist inside a template, and writing that into a user namespace.

Host uid 0 is never mapped: many kernel settings ask only for the global root user, so a mapped root could write them
without any capability. A node that runs as root maps inside-0 to the start of an unprivileged range; an ordinary user
can map exactly one id, their own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hotbed.errors import IsolationUnavailable

FIRST_ID = 200_000
COUNT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Inside 0..count-1 are the host's uid..uid+count-1 (and the same for gid)."""

    uid: int
    gid: int
    count: int = 1

    def __post_init__(self) -> None:
        if self.uid == 0:
            raise IsolationUnavailable("uid 0 must never be mapped into a sandbox")


def choose(euid: int, egid: int, uid_map: str) -> Ids:
    """The ids for a node that runs as euid, in a user namespace with this /proc/self/uid_map."""
    if euid != 0:
        return Ids(uid=euid, gid=egid)
    mapped = max((int(first) + int(count) for first, _, count in map(str.split, uid_map.splitlines())), default=0)
    if mapped >= FIRST_ID + COUNT:
        return Ids(uid=FIRST_ID, gid=FIRST_ID, count=COUNT)
    if mapped < 2:
        raise IsolationUnavailable(
            "this root has no second user id to give to sandboxes",
            hint="run the node as an ordinary user, or give its container a range of ids",
        )
    return Ids(uid=mapped // 2, gid=mapped // 2, count=mapped - mapped // 2)


def mine() -> Ids:
    """The ids for this process."""
    return choose(os.geteuid(), os.getegid(), Path("/proc/self/uid_map").read_text())


def write_maps(pid: int, ids: Ids) -> None:
    """Map a process's new user namespace from outside (a range needs CAP_SETUID here)."""
    if ids.count == 1:
        _write(f"/proc/{pid}/setgroups", "deny")
    _write(f"/proc/{pid}/uid_map", f"0 {ids.uid} {ids.count}")
    _write(f"/proc/{pid}/gid_map", f"0 {ids.gid} {ids.count}")


def map_only(uid: int, gid: int) -> None:
    """In a new user namespace of one's own: 0 inside is this uid, which needs no right at all."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")


def become_inside_root() -> None:
    """Be user 0 of the namespace that this process is in."""
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
