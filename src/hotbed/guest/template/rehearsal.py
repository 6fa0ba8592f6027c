"""Running a fork's path in the template itself, so that every fork finds it warm.

The first run of any code writes: inline caches, interned names, arenas, lazily bound symbols. After a fork each of
those writes is a page fault. So the template goes through the same functions, for real, in namespaces of its own that
it leaves again. What cannot be undone (the last user namespace, giving up rights) is left to the forks.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Callable, Dict

from .. import kernel
from . import isolate, networks, newborn

ROUNDS = 30  # often enough for the interpreter to specialise what it runs
_KINDS = (
    ("mnt", kernel.CLONE_NEWNS),
    ("ipc", kernel.CLONE_NEWIPC),
    ("uts", kernel.CLONE_NEWUTS),
    ("cgroup", kernel.CLONE_NEWCGROUP),
    ("net", kernel.CLONE_NEWNET),
)


def run(child: newborn.Newborn, pool: networks.NetworkPool, null: int, rounds: int) -> None:
    """Go through it, and come back. `null` stands for the socket."""
    homes = [(os.open("/proc/self/ns/" + name, os.O_RDONLY | os.O_CLOEXEC), kind) for name, kind in _KINDS]
    shape = isolate.shape({"limits": _harmless(), "hostname": "sandbox"})
    for _ in range(rounds):
        network = pool.lease()
        try:
            child.rehearse((0, 1, 0, shape, {"events": ["rehearsed"]}), network.fd, null)
        finally:
            for fd, kind in homes:
                kernel.setns(fd, kind)
            os.chdir("/")
        pool.give_back(network)
    for fd, _ in homes:
        os.close(fd)


def run_forks(fork: Callable[[], None], rounds: int) -> None:
    """The template's own part, and what the runtime does around a fork."""
    threading = sys.modules.get("threading")
    for _ in range(rounds):
        fork()
        if threading is not None:
            threading._after_fork()  # only renews locks that nobody holds


def _harmless() -> Dict[str, int]:
    """Limits that leave the template as it is."""
    files, processes = resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_NPROC)
    return {"disk_mib": 1, "files": 64, "open_files": files[1], "pids": processes[1], "memory_mib": 64}
