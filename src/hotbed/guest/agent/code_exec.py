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
from .memory import is_watched
from .orderlog import OrderLog, Run
from .pinning import CHECK_BYTES
from .pump import Pump
from .quiet import read_to_the_end
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
        # The only thing that runs here, nothing else was asked yet, and somebody else watches its memory (see `quiet`).
        busy = (box.started and box.opened) or box.connection.buffered()
        self._alone = not busy and not request.stream and not is_watched(box)

    def launch(self, cwd: str) -> None:
        """Fork first and look after it second: the child inherits less that is new, and both can run at once."""
        request = self.request
        if self._alone:
            self.box.be_ready()
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

    def _look_after(self, pid: int, ends: Sequence[int], mark: Optional[int], pump: Optional[Pump] = None) -> None:
        if not self._alone or pump is not None:
            self.begin(ends, mark, pump)
            self._follow(pid)
            return
        capture = Capture(self.request.output_bytes)
        if not self._passes_quietly(capture, ends):
            self.begin([stream.fd for stream in capture.streams], mark, None, capture)
            self.job.count_from_birth()
            self._follow(pid)
            if all(stream.fd < 0 for stream in capture.streams):
                self._silent()

    def _follow(self, pid: int) -> None:
        self.job.on_silence = self._silent
        self.job.follow(pid)

    def _passes_quietly(self, capture: Capture, ends: Sequence[int]) -> bool:
        """Whether it ran to its end, and well; it has been told of then."""
        request, others = self.request, (self.box.connection.fileno(), self.box.listen().fd)
        assert self._log is not None
        seconds, most_bytes = request.timeout_s, request.output_kill_bytes
        if not read_to_the_end(capture, ends, others, seconds=seconds, most_bytes=most_bytes):
            return False
        ending = self._log.ending()
        if ending is None or ending[0] != 0:
            return False
        _, self.cpu_us, self.maxrss_kib = ending
        self.box.started += 1
        self.tell(capture.kept(self.runs(capture)), "ok", 0, None)
        return True

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
