"""Whether memory is short, and how much is available: of the machine, and of the control groups that hold us.

Shortage is pressure stall information (Documentation/accounting/psi.rst), which the kernel keeps for the machine and
for each v2 group. A group's limit counts page cache too, which goes when something else needs the memory, and so is
taken for available, as MemAvailable does (filesystems/proc.rst).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

HIGH = 10.0  # percent of the last ten seconds in which somebody waited for memory
_PRESSURE = Path("/proc/pressure/memory")
_MEMINFO = Path("/proc/meminfo")
_LIMITS = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
_CACHE = (b"inactive_file", b"active_file")


class Memory:
    """What holds this node. `group` is its control group's directory of the memory controller, if there is one."""

    def __init__(self, group: Path | None = None, *, pressure: Path = _PRESSURE, meminfo: Path = _MEMINFO) -> None:
        self._groups = tuple(_with_parents(group)) if group is not None else ()
        self._pressures = (pressure, *(directory / "memory.pressure" for directory in self._groups[:1]))
        self._meminfo = meminfo

    def is_short(self) -> bool:
        """Whether much time was lost to it in the last ten seconds; False where the kernel keeps no account."""
        return any(map(memory_is_short, self._pressures))

    def available_mib(self) -> int:
        """What can be had without anything else being pushed out."""
        found = [_machine(self._meminfo), *map(_of_group, self._groups)]
        return max(0, min(bytes_ for bytes_ in found if bytes_ is not None) >> 20)


def memory_is_short(file: Path = _PRESSURE) -> bool:
    """Whether one account tells of much time lost."""
    try:
        words = file.read_text().split()
    except OSError:
        return False
    found = [float(word.partition("=")[2]) for word in words[:2] if word.startswith("avg10=")]
    return bool(found) and found[0] > HIGH


def _with_parents(group: Path) -> Iterable[Path]:
    """The groups whose limits hold: this one, and those above it that are limited."""
    return (one for one in (group, *group.parents) if any((one / limit).exists() for limit, _ in _LIMITS))


def _machine(meminfo: Path) -> int:
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def _of_group(directory: Path) -> int | None:
    """What is left below a group's limit; None if it has none."""
    for limit, usage in _LIMITS:
        try:
            most = (directory / limit).read_text().strip()
            if most == "max":
                return None
            return int(most) - int((directory / usage).read_text()) + _cache(directory)
        except (OSError, ValueError):
            continue
    return None


def _cache(directory: Path) -> int:
    """Page cache; a v1 group tells of its own, and of the whole tree as `total_`."""
    fields = (line.split() for line in (directory / "memory.stat").read_bytes().splitlines())
    found = {field[0]: int(field[1]) for field in fields}
    return max(sum(found.get(prefix + name, 0) for name in _CACHE) for prefix in (b"", b"total_"))
