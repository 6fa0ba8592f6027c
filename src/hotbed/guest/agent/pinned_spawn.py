"""Starts a command that is pinned from its first instruction on, as cheaply as one that is not.

A forked runner that pins itself and then execs has to take down, at its exec, its copy of the whole warm interpreter:
milliseconds. But a filter belongs to a thread, and what the thread starts inherits it. So a thread of the agent, the
*starter*, pins itself, starts the command by posix_spawn, which copies no memory, and ends. The agent's own thread
waits for it and is never under the filter; when it goes on it is alone again, as whoever forks has to be.

A starter may be pinned before there is any command: then it waits in its first draw until the supervisor knows the
seed. The agent forks nothing while one waits (`let_go`).
"""

from __future__ import annotations

import _thread
import errno
import os
import signal
import socket
import time
from typing import Callable, Mapping, Optional, Sequence, Tuple

from . import spawn
from .pinning import NotPinned, Pinning

NUMBER = 4  # of the first command: the agent, a spare (or a number spent in its place), the thread, the command
_STACK_BYTES = 256 << 10  # counts as the sandbox's memory where the host limits data
_THREADS = "/proc/self/task"
_PATIENCE_S = 10.0

Command = Tuple[Sequence[spawn.Word], Mapping[str, str], Sequence[int]]


class Starter:
    """One such thread. `put_on` pins it, and returns what shows that it was, if anybody is to be shown."""

    def __init__(self, put_on: Callable[[], bytes]) -> None:
        self.check = b""
        self._put_on = put_on
        self._command: Optional[Command] = None
        self._started = 0
        self._failed: Optional[BaseException] = None
        self._told, self._over = _taken_lock(), _taken_lock()
        _begin(self._work)

    def start(self, argv: Sequence[spawn.Word], env: Mapping[str, str], fds: Sequence[int]) -> int:
        """Start `argv`, pinned; its pid. Once. Raises `NotPinned`, and OSError as `spawn` does."""
        self._command = (argv, env, fds)
        self._told.release()
        self._over.acquire()
        _wait_alone()
        if self._failed is not None:
            raise self._failed
        return self._started

    def let_go(self) -> None:
        """Have no command for it: wait until it has ended, because nobody will say its seed. Raises `NotPinned`.

        May be tried again: it may end later.
        """
        if self._told.locked():
            self._told.release()
        if not self._over.acquire(timeout=_PATIENCE_S):
            raise NotPinned("what was pinned ahead still waits for its seed")
        _wait_alone()

    def _work(self) -> None:
        try:
            self.check = self._put_on()
            self._told.acquire()
            if self._command is not None:
                self._started = spawn.spawn(*self._command)
        except BaseException as error:  # noqa: BLE001  # boundary: it is raised again in the agent's own thread
            self._failed = error
        finally:
            self._over.release()


def begin(pinning: Pinning, channel: int, level: str) -> Starter:
    """A starter that is pinned over (a copy of) the channel now. Raises OSError when there may be no thread."""

    def put_on() -> bytes:
        pinning.enter(_copy_of(channel), level, spawns=True)
        return b""

    return Starter(put_on)


def begin_ahead(pinning: Pinning, channel: int) -> Starter:
    """One that waits for its seed, at level `rng`, over a copy of the channel."""
    sock = _copy_of(channel)

    def put_on() -> bytes:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the agent's own thread
        return pinning.wait(sock, spawns=True)[0]

    try:
        return Starter(put_on)
    except OSError:
        sock.close()
        raise


def _copy_of(channel: int) -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, os.dup(channel))


def _taken_lock() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _begin(work: Callable[[], None]) -> None:
    before = _thread.stack_size(_STACK_BYTES)
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # all that it says when there may be no further thread
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    finally:
        _thread.stack_size(before)  # what is forked from us later inherits it


def _wait_alone() -> None:
    while len(os.listdir(_THREADS)) > 1:
        time.sleep(0.0001)  # it has nothing left to do but to end


def spend_a_number(env: Mapping[str, str]) -> None:
    """In a sandbox that was not parked: use the number that a spare has in others, for the command to have the same."""
    try:
        spawn.spawn(["/dev/null"], env, ())
    except OSError:
        pass  # as it should be: nobody can execute it, and its number is spent
