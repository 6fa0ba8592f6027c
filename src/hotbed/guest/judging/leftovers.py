"""What a job leaves in its judge's sandbox. A sandbox in which nothing is left may judge the next job.

Test scripts run in forks of the judge, so what they did to their process is gone with it. What outlives a process is
looked at here: other processes, files (the sandbox's layer is a tmpfs of its own: whatever is written takes blocks or
inodes of it), objects of System V IPC, traffic on the loopback, and what was printed. Whoever wants to leave something
that is not seen here can: only to later jobs of the same user, who could have written it into their tests.
"""

from __future__ import annotations

import os
from typing import Tuple

_IPC = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
_MOST_PRINTED = 1 << 20

Look = Tuple[object, ...]


class Ground:
    """The sandbox as it was when its judge began. For its pid 1: nobody else may be there, and nobody else can tell."""

    def __init__(self) -> None:
        self._before = look()

    def is_untouched(self) -> bool:
        """Whether it is as it was."""
        return is_alone() and os.fstat(1).st_size + os.fstat(2).st_size <= _MOST_PRINTED and look() == self._before


def is_alone() -> bool:
    """Whether there is no other process, living or dead, in this pid namespace."""
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        return True
    return False


def look() -> Look:
    """What there is of files, of objects of IPC, and of traffic."""
    disk = os.statvfs("/")
    return (disk.f_bfree, disk.f_ffree, *map(_read, _IPC), _read("/proc/self/net/dev"))


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""  # a kernel without that
    try:
        return os.read(fd, 1 << 16)
    finally:
        os.close(fd)
