"""How much memory the machine has in use."""

from __future__ import annotations

import threading
from pathlib import Path

_SAMPLE_EVERY_S = 0.02


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
