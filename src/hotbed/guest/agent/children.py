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


class Alarm:
    """A descriptor that is readable once a child has ended. SIGCHLD writes to it; nothing is done in the handler."""

    def __init__(self) -> None:
        self.fd, self._out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = _signal.signal(_signal.SIGCHLD, _wake)
        _signal.set_wakeup_fd(self._out, warn_on_full_buffer=False)

    def ring(self) -> None:
        """As if a child had ended."""
        os.write(self._out, b"\0")

    def hush(self) -> None:
        """Be quiet until the next child ends."""
        try:
            os.read(self.fd, 512)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Stop listening for SIGCHLD."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, self._before)
        os.close(self.fd)
        os.close(self._out)


class Children:
    """Who waits for which child."""

    def __init__(self, loop: Loop, alarm: Alarm) -> None:
        self._loop = loop
        self._alarm = alarm
        self._calls: Dict[int, OnEnd] = {}
        loop.watch(alarm.fd, self._woken)
        alarm.ring()  # a child may have ended before anybody listened

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
        """Reap nobody any more."""
        self._loop.unwatch(self._alarm.fd)

    def _woken(self) -> None:
        self._alarm.hush()
        self.reap()


def reap_all() -> bool:
    """Reap whoever has ended, for nobody; whether no child is left."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return False
        except ChildProcessError:
            return True
