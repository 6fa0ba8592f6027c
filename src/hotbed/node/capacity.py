"""What this machine has to offer: how many sandboxes it should hold when nobody says, and how busy it is."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY_PER_SANDBOX_MIB = 6  # an idle one takes 1.5 to 2.5, a running one its program's pages on top
PER_CORE = 512
FEWEST = 8


def default_max_sandboxes(*, memory_mib: int, cores: int) -> int:
    """Half of the memory at `MEMORY_PER_SANDBOX_MIB` each, and no more than the cores could ever keep busy."""
    return max(FEWEST, min(memory_mib // 2 // MEMORY_PER_SANDBOX_MIB, PER_CORE * cores))


def usable_cores() -> int:
    """The CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def runnable_threads(loadavg: Path = Path("/proc/loadavg")) -> int:
    """How many threads of the machine run or wait for a CPU now (man 5 proc_loadavg); 0 where that is not told."""
    try:
        return int(loadavg.read_text().split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return 0


def usable_memory_mib(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """The memory there is to have: what the kernel calls available, or the cgroup's limit when that is less."""
    available = 0
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) >> 10
    limits = [limit for name in ("memory.max", "memory/memory.limit_in_bytes") if (limit := _number(cgroup / name))]
    return min([available, *(limit >> 20 for limit in limits)])


def _number(path: Path) -> int | None:
    """A file's one number; None when it is missing or says "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
