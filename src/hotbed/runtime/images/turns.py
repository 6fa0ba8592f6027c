"""Taking turns at what must be done by one process at a time: by name, across every process that uses a store.

A turn is a lock on a file, so it ends with its process, however that ends. Whoever is done removes the file; who waited
for it finds that, and begins again with the file that is there now.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_POLL_S = 0.05


class Turns:
    """A directory of locks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def turn(self, name: str, tick: Callable[[int], Any]) -> Iterator[None]:
        """Alone at it. `tick` is called while others are."""
        while (fd := self._take(name)) is None:
            tick(0)
            time.sleep(_POLL_S)
        try:
            yield
        finally:
            self._path(name).unlink(missing_ok=True)
            os.close(fd)

    def is_taken(self, name: str) -> bool:
        """Whether somebody is at it."""
        fd = self._take(name, flags=os.O_RDONLY)
        if fd is not None:
            os.close(fd)
        return fd is None and self._path(name).exists()

    def _take(self, name: str, *, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
        try:
            fd = os.open(self._path(name), flags | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(self._path(name))):
                return fd
        except (BlockingIOError, FileNotFoundError):  # somebody is at it, or has just removed what we locked
            pass
        os.close(fd)
        return None

    def _path(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode()).hexdigest()[:32]
