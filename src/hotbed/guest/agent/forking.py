"""fork(2) without what the interpreter repairs after it, where there is nothing to repair.

`os.fork` makes new locks and thread records in the child in case other threads held the old ones: some forty page
faults. Templates and agents have one thread, and their interpreter's state is as whole in the child as it was in the
parent. It is libc's fork all the same, with the hooks that C libraries registered. Hooks of Python modules are a reason
to use `os.fork`, unless `forkhooks` makes up for them.
"""

from __future__ import annotations

import ctypes
import os

from .. import forkhooks

_libc_fork = ctypes.PyDLL(None).fork  # PyDLL: parent and child come back holding the interpreter's lock


def fork() -> int:
    """Fork this single-threaded process; 0 in the child. Raises OSError."""
    if not forkhooks.dispensable:
        return os.fork()
    pid: int = _libc_fork()
    return pid if pid >= 0 else os.fork()  # which fails likewise, and says why
