"""From folder to folder by descriptors, one open at a time: a tree's depth costs neither descriptors nor recursion.

What is walked may be hostile: no step follows a link, and the way up is checked to lead where the walk came from.
"""

from __future__ import annotations

import errno
import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def to(folder: int, name: str) -> int:
    """The folder with this name in an open one, which is closed. Raises OSError, and then it stays open."""
    found = os.open(name, _FOLDER, dir_fd=folder)
    os.close(folder)
    return found


def up(folder: int, known: os.stat_result) -> int:
    """The folder above an open one, which is closed. Raises OSError, also if that is not the one that is known."""
    found = os.open("..", _FOLDER, dir_fd=folder)
    info = os.fstat(found)
    if (info.st_dev, info.st_ino) != (known.st_dev, known.st_ino):
        os.close(found)
        raise OSError(errno.ESTALE, "a folder was moved while its tree was walked")
    os.close(folder)
    return found
