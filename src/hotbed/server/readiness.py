"""What a starting node tells whoever started it: one line of JSON on a pipe, `{"ready": true}` or an error body.

A service manager hears on its own socket that the node serves (sd_notify(3)); that it failed, it sees by the exit.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from typing import Any

from hotbed.errors import Error


class Readiness:
    """The write end of the pipe, and the manager's socket; None when nobody waits. Only the first word counts."""

    def __init__(self, fd: int | None, manager: str | None = None) -> None:
        self._fd = fd
        self._manager = manager
        if fd is not None and fd > 2:
            os.set_inheritable(fd, False)

    def ready(self) -> None:
        """The node serves."""
        self._tell({"ready": True, "pid": os.getpid()})
        manager, self._manager = self._manager, None
        if manager is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, suppress(OSError):  # nobody waits any more
            told.sendto(b"READY=1", manager)

    def failed(self, error: Error) -> None:
        """The node could not start, and why."""
        self._tell({"ready": False, **error.to_wire()})

    def _tell(self, word: dict[str, Any]) -> None:
        fd, self._fd = self._fd, None
        if fd is None:
            return
        try:
            os.write(fd, json.dumps(word).encode() + b"\n")
        except BrokenPipeError:
            pass  # nobody waits any more
        finally:
            if fd > 2:  # standard output is not ours to close
                os.close(fd)
