"""Starts a command that is pinned from its first instruction on, as cheaply as one that is not.

A forked runner that pins itself and then execs has to take down, at its exec, its copy of the whole warm interpreter:
milliseconds. But a filter belongs to a thread, and what the thread starts inherits it. So a thread of the agent pins
itself, starts the command by posix_spawn, which copies no memory, and ends. The agent's own thread waits for it and is
never under the filter; when it goes on it is alone again, as whoever forks has to be.
"""

from __future__ import annotations

import _thread
import errno
import os
import socket
import time
from typing import Callable, List, Mapping, Sequence

from . import spawn
from .pinning import Pinning

NUMBER = 4  # of the first command: the agent, a spare (or a number spent in its place), the thread, the command
_STACK_BYTES = 256 << 10  # counts as the sandbox's memory where the host limits data
_THREADS = "/proc/self/task"


def start(
    pinning: Pinning,
    channel: int,
    level: str,
    argv: Sequence[spawn.Word],
    env: Mapping[str, str],
    fds: Sequence[int],
) -> int:
    """Start `argv`, pinned over (a copy of) the channel; its pid. Raises `NotPinned`, and OSError as `spawn` does."""
    started: List[int] = []
    failed: List[BaseException] = []
    over = _thread.allocate_lock()
    over.acquire()

    def work() -> None:
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, os.dup(channel))
            pinning.enter(sock, level, spawns=True)
            started.append(spawn.spawn(argv, env, fds))
        except BaseException as error:  # noqa: BLE001  # boundary: it is raised again in the agent's own thread
            failed.append(error)
        finally:
            over.release()

    _begin(work)
    over.acquire()
    while len(os.listdir(_THREADS)) > 1:
        time.sleep(0.0001)  # it has nothing left to do but to end
    if failed:
        raise failed[0]
    return started[0]


def _begin(work: Callable[[], None]) -> None:
    before = _thread.stack_size(_STACK_BYTES)
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # all that it says when there may be no further thread
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    finally:
        _thread.stack_size(before)  # what is forked from us later inherits it


def spend_a_number(env: Mapping[str, str]) -> None:
    """In a sandbox that was not parked: use the number that a spare has in others, for the command to have the same."""
    try:
        spawn.spawn(["/dev/null"], env, ())
    except OSError:
        pass  # as it should be: nobody can execute it, and its number is spent
