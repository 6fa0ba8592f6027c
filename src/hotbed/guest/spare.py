"""A runner forked ahead of the request, so that the first `code` exec of a parked sandbox waits for no fork.

It has done all that does not depend on the request and waits for it on a pipe. It is used only if the whole request
fits into that pipe, so that handing it over cannot block, whatever was done to the spare meanwhile.
"""

from __future__ import annotations

import marshal
import os
from typing import Callable, NamedTuple, NoReturn, Optional, Sequence

from . import runner
from .box import NULL, Box
from .capture import pipes
from .child import become
from .forking import fork
from .orderlog import OrderLog
from .runner import Work
from .stdio import Stdio

_PIPE_BYTES = 4096 * 15  # a pipe holds 16 pages


class Spare(NamedTuple):
    """A waiting runner and our ends of what it has."""

    pid: int
    ends: Sequence[int]
    log: OrderLog
    mark: Optional[int]
    order: int


class Parking:
    """Where the spare waits, if there is one."""

    def __init__(self, box: Box, stdio: Stdio) -> None:
        self.stdio = stdio
        self._box = box
        self._spare: Optional[Spare] = None

    def fill(self, rehearse: Callable[[], None]) -> None:
        """Fork a runner that rehearses and waits. A refused fork is no harm: the exec forks then."""
        try:
            self._spare = park(self._box, self.stdio, rehearse)
        except OSError:
            self._spare = None

    def park(self, spare: Spare) -> None:
        """Let this one wait here."""
        self._spare = spare

    def take(self, work: Work) -> Optional[Spare]:
        """The spare, with the work already its own; None if there is none or the work does not fit."""
        spare, self._spare = self._spare, None
        if spare is None or hand_over(spare, work):
            return spare
        for fd in spare.ends:
            os.close(fd)
        spare.log.close()
        return None


def park(box: Box, stdio: Stdio, rehearse: Callable[[], None]) -> Spare:
    """Fork a runner. Raises OSError."""
    mark = box.marks.next()
    log = OrderLog()
    ends, outs = pipes()
    request, order = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(order, False)
    pid = fork()
    if pid == 0:
        wait(stdio, log, (NULL, *outs), request, rehearse)
    for fd in (*outs, request):
        os.close(fd)
    return Spare(pid, ends, log, mark, order)


def wait(stdio: Stdio, log: OrderLog, fds: Sequence[int], request: int, rehearse: Callable[[], None]) -> NoReturn:
    """In the spare: become a runner, wait for work, do it. Never returns."""
    try:
        rehearse()
        channel = become(*fds, keep=request)
        assert channel is not None
        data = b""
        while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "big"):
            more = os.read(channel, 1 << 16)
            if not more:
                os._exit(0)  # the agent is gone
            data += more
        os.close(channel)
        work = Work(*marshal.loads(data[8:]))
        os.chdir(work.cwd)
        runner.run(work, stdio, log)
    finally:
        os._exit(70)


def hand_over(spare: Spare, work: Work) -> bool:
    """Give the spare its work; whether it could be. If not, the spare ends."""
    data = marshal.dumps((work.source, list(work.args), dict(work.env), work.cwd, work.entropy))
    data = len(data).to_bytes(8, "big") + data
    try:
        return len(data) <= _PIPE_BYTES and os.write(spare.order, data) == len(data)
    except OSError:  # it was killed, or its pipe is smaller than usual (man 7 pipe)
        return False
    finally:
        os.close(spare.order)
