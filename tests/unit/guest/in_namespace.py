"""Running a piece of a test in a child that has a user namespace, and so every right over what it makes there."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from hotbed.guest import kernel


def in_user_namespace(attempt: Callable[[], bool], flags: int = 0) -> bool:
    """Whether it returned true there. What it raised goes to stderr."""
    uid, gid = os.geteuid(), os.getegid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            kernel.unshare(kernel.CLONE_NEWUSER | flags)
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
            status = 0 if attempt() else 1
        except BaseException:  # noqa: BLE001  # boundary: the last frame of a forked process
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0
