"""Watches memory where no cgroup does: every 50 ms while something runs, all of the sandbox against its limit.

A program that allocates faster than that can overshoot the limit by what it gets in one interval. Pages that forks
share with the template would be counted many times by the cheap sum, so it only raises a suspicion, and the kernel's
proportional count decides.
"""

from __future__ import annotations

import signal
from typing import Any, List, Mapping

from . import hunting, processes
from .box import Box

_INTERVAL_S = 0.05


def is_watched(config: Mapping[str, Any]) -> bool:
    """Whether that is for the agent of such a sandbox to do: no cgroup counts."""
    counted = config.get("memory_events_fd") is not None
    limit = (config.get("limits") or {}).get("memory_mib")
    return bool(limit) and bool(config.get("poll_memory", not counted))


class MemoryWatch:
    """Kills the largest job when the sandbox is over its memory."""

    def __init__(self, box: Box) -> None:
        self._box = box
        limits = box.config.get("limits") or {}
        self._limit_kib = (limits.get("memory_mib") or 0) * 1024
        self._on = is_watched(box.config)
        self._pending = False

    def wake(self) -> None:
        """Something starts to run."""
        if self._on and not self._pending:
            self._pending = True
            self._box.loop.after(_INTERVAL_S, self._look)

    def _look(self) -> None:
        self._pending = False
        pids = processes.living()
        if processes.resident_kib(pids) > self._limit_kib and processes.proportional_kib(pids) > self._limit_kib:
            self._kill_largest(pids)
        if pids or self._box.jobs:
            self.wake()

    def _kill_largest(self, pids: List[int]) -> None:
        jobs = list(self._box.jobs.values())
        if jobs:
            max(jobs, key=lambda job: processes.proportional_kib(self._box.members(job))).kill("oom")
        else:
            for pid in pids:
                hunting.send(pid, signal.SIGKILL)
