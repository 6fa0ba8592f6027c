"""Processes of this machine, and waiting for something to come true."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def parents() -> dict[int, int]:
    """Every process of this machine, and its parent."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found


def children_of(pid: int, among: dict[int, int] | None = None) -> set[int]:
    """Every process below one."""
    known = parents() if among is None else among
    found = {pid}
    while True:
        more = {child for child, parent in known.items() if parent in found} - found
        if not more:
            return found - {pid}
        found |= more


def wait_until(holds: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    """Whether something came to hold in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False
