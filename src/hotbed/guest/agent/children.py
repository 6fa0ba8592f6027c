"""Reaps every child of the agent: those it started, and the orphans that come to it as pid 1."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed leaves it out
import os
import resource
from types import FrameType
from typing import Callable, Dict, Optional

from .loop import Loop

OnEnd = Callable[[int, resource.struct_rusage], None]


def _wake(_number: int, _frame: Optional[FrameType]) -> None:
    """Without a handler of its own, Python would not write the signal to the wake-up descriptor."""


class Children:
    """Who waits for which child. SIGCHLD wakes the loop through a pipe; nothing is done in the handler."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._calls: Dict[int, OnEnd] = {}
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = _signal.signal(_signal.SIGCHLD, _wake)
        _signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        loop.watch(self._wake_in, self._woken)
        os.write(self._wake_out, b"\0")  # a child may have ended before anybody listened

    def expect(self, pid: int, call: OnEnd) -> None:
        """Call with the wait status and resource usage once `pid` has ended."""
        self._calls[pid] = call

    def forget(self, pid: int) -> None:
        """Reap it like an orphan."""
        self._calls.pop(pid, None)

    def reap(self) -> None:
        """Reap whoever has ended by now."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            call = self._calls.pop(pid, None)
            if call is not None:
                call(status, usage)

    def drain(self) -> None:
        """Wait for every child there is."""
        try:
            while True:
                os.wait4(-1, 0)
        except ChildProcessError:
            self._calls.clear()

    def close(self) -> None:
        """Stop listening for SIGCHLD."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, self._before)
        self._loop.unwatch(self._wake_in)
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _woken(self) -> None:
        try:
            os.read(self._wake_in, 512)
        except BlockingIOError:
            pass
        self.reap()
