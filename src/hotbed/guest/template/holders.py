"""The template's holders: short-lived forks of it that make layers (see `layers`)."""

from __future__ import annotations

import os
from typing import Any, Dict, Sequence

from .. import kernel
from . import layers


class Holders:
    """Those that are at work, by their pidfds."""

    def __init__(self) -> None:
        self._pids: Dict[int, int] = {}

    def start(self, order: Dict[str, Any], pid: int, fds: Sequence[int]) -> int:
        """Fork one for the sandbox with this pid 1; its pidfd. It answers on the first, a socket. Raises OSError."""
        holder = os.fork()
        if holder == 0:
            layers.become_holder(order, pid, fds)
        pidfd = kernel.pidfd_open(holder)
        self._pids[pidfd] = holder
        return pidfd

    def reap(self, pidfd: int) -> None:
        """One has ended."""
        os.close(pidfd)
        os.waitpid(self._pids.pop(pidfd), 0)
