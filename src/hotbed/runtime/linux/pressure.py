"""Whether the machine is short of memory, by its pressure stall information (Documentation/accounting/psi.rst)."""

from __future__ import annotations

from pathlib import Path

HIGH = 10.0  # percent of the last ten seconds in which somebody waited for memory
_FILE = Path("/proc/pressure/memory")


def memory_is_short(file: Path = _FILE) -> bool:
    """Whether much time was lost to it in the last ten seconds; False where the kernel keeps no account."""
    try:
        words = file.read_text().split()
    except OSError:
        return False
    found = [float(word.partition("=")[2]) for word in words[:2] if word.startswith("avg10=")]
    return bool(found) and found[0] > HIGH
