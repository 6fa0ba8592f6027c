"""A worker's view on its author's own machine: the environment's directory at /env, an empty folder at /workspace.

For `python env.py` outside any pool. Nothing is isolated by it: a child sees everything else as it was, and runs the
author's code as the author. Where a kernel does not let an ordinary user do this, the child goes on without.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from typing import Callable

from .. import kernel

_KEPT = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC  # what a user namespace may not take off a mount


def run(env_dir: str, play: Callable[[], int]) -> int:
    """The exit code of `play`, called in a child that has the view."""
    with tempfile.TemporaryDirectory(prefix="hotbed-env-") as stage:
        child = os.fork()
        if child == 0:
            _be_child(stage, env_dir, play)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both; the child decides
        try:
            status = os.waitpid(child, 0)[1]
        finally:
            signal.signal(signal.SIGINT, before)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _be_child(stage: str, env_dir: str, play: Callable[[], int]) -> None:
    code = 130
    try:
        try:
            if kernel.SUPPORTED:
                enter(stage, env_dir)
        except OSError:
            pass  # the play goes on, and says what it does not find
        code = play()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def enter(stage: str, env_dir: str) -> None:
    """Give this process, which has one thread, the view, put together at an empty directory."""
    here, user, group = os.getcwd(), os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
    kernel.mount(b"tmpfs", stage.encode(), b"tmpfs", 0, b"mode=755")
    for name in set(os.listdir("/")) - {"env", "workspace"}:
        _show(f"/{name}", f"{stage}/{name}")
    os.mkdir(f"{stage}/workspace")
    _show(env_dir, f"{stage}/env")
    flags = os.statvfs(env_dir).f_flag & _KEPT
    read_only = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
    kernel.mount(None, f"{stage}/env".encode(), None, read_only | flags, None)
    os.chroot(stage)
    os.chdir(here)


def _show(source: str, target: str) -> None:
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.mkdir(target)
        kernel.mount(source.encode(), target.encode(), None, kernel.MS_BIND | kernel.MS_REC, None)
