"""An exec of `code`: a fork of this interpreter, or the spare that was forked ahead."""

from __future__ import annotations

import os
import resource
from typing import Any, Callable, Dict, Optional, Sequence

from . import runner
from .box import Box
from .capture import Capture
from .execs import Exec, close
from .forking import fork
from .orderlog import OrderLog, Run
from .pinning import CHECK_BYTES
from .pump import Pump
from .quiet import Running
from .request import ExecRequest, Refused
from .runner import Work
from .spare import Parking
from .verdict import decode


class CodeExec(Exec):
    """One program in the warm interpreter."""

    def __init__(self, box: Box, request: ExecRequest, parking: Parking, on_result: Callable[[Exec], None]) -> None:
        super().__init__(box, request, on_result)
        self._parking = parking
        self._order = -1
        self._log: Optional[OrderLog] = None

    def launch(self, cwd: str) -> None:
        """Fork first and look after it second: the child inherits less that is new, and both can run at once."""
        request = self.request
        work = Work(request.program, request.args, request.env, cwd, pin=request.pin, ahead=request.ahead)
        ready = None if request.stdin or request.stdin_open else self._parking.take(work, self.channel)
        if ready is not None:
            self.hang_up()
            self._log = ready.log
            self._order = ready.order if ready.ahead else -1
            self._look_after(ready.pid, ready.ends, ready.mark)
            return
        if request.ahead:
            raise Refused("busy", "the interpreter that was pinned ahead is gone; nothing was run")
        self._log = log = OrderLog()
        ends, fds, pump = self.open()
        mark = self.box.marks.next()
        try:
            pid = fork()
        except OSError as error:
            close(fds)
            self.hang_up()
            self.begin(ends, mark, pump)
            self.not_started(error)
            return
        if pid == 0:
            runner.start(work, self._parking.stdio, log, fds, self.channel)
        close(fds)
        self.hang_up()
        self._look_after(pid, ends, mark, pump)

    def take_over(self, running: Running) -> None:
        """Go on with a program that was started on the short way."""
        self.begun_ns, self._log = running.begun_ns, running.log
        capture = Capture(self.request.output_bytes)
        for number, data in running.printed:
            capture.add(capture.streams[number - 1], memoryview(data))
        self.begin(running.ends, running.mark, None, capture)
        self.job.count_from_birth()
        self._follow(running.pid)
        if running.ends == [-1, -1]:
            self._silent()

    def _look_after(self, pid: int, ends: Sequence[int], mark: Optional[int], pump: Optional[Pump] = None) -> None:
        self.begin(ends, mark, pump)
        self._follow(pid)

    def _follow(self, pid: int) -> None:
        self.job.on_silence = self._silent
        self.job.follow(pid)

    def leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        """The process has ended."""
        self.count(usage)
        self.finish(*decode(status))

    def _silent(self) -> None:
        """Both pipes are at their end: a runner that has announced its exit is done but for the kernel's work."""
        ending = self._log.ending() if self._log is not None else None
        if ending is not None and self.job.cause is None:
            self.box.children.forget(self.job.leader)
            exit_code, self.cpu_us, self.maxrss_kib = ending
            self.finish(exit_code, None)

    def extra(self) -> Dict[str, Any]:
        """What an interpreter that was pinned ahead drew first: the node knows whether its seed implies that."""
        if self._order < 0:
            return {}
        return {"check": self._first_draw().hex()}

    def _first_draw(self) -> bytes:
        try:
            return os.read(self._order, CHECK_BYTES)
        except OSError:  # it ended before it drew
            return b""
        finally:
            self._close_order()

    def abandon(self) -> None:
        """Nobody will ask what it drew first, either."""
        super().abandon()
        self._close_order()

    def _close_order(self) -> None:
        if self._order >= 0:
            os.close(self._order)
            self._order = -1

    def runs(self, capture: Capture) -> Optional[Sequence[Run]]:
        """The runner's own account, if nobody else wrote."""
        if self._log is None:
            return None
        runs = self._log.runs(*(stream.total for stream in capture.streams))
        self._log.close()
        return runs
