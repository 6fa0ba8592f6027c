"""One exec: its files are written, its program or commands run, and one frame tells how it went."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import runner, spawn
from .box import Box
from .capture import Capture, pipes
from .filing import write_file
from .job import Job
from .orderlog import OrderLog
from .pump import pipe_with
from .request import ExecRequest, refusal
from .runner import Work
from .spare import Parking
from .verdict import decide, decode

_SHELL_FLAG = "-c"


class Exec:
    """From the request to the result."""

    def __init__(self, box: Box, request: ExecRequest, parking: Parking, on_result: Callable[[Exec], None]) -> None:
        self.box = box
        self.request = request
        self._parking = parking
        self._on_result = on_result
        self._log: Optional[OrderLog] = None
        self._steps: List[Dict[str, Optional[int]]] = []
        self._commands: List[List[spawn.Word]] = []
        self._fds: Tuple[int, ...] = ()
        self._begun_ns = self._started_ns = 0
        self._cpu_us = self._maxrss_kib = 0
        capture = Capture(box.scratch, request.output_bytes, self._stream if request.stream else None)
        self.job = Job(box, capture, kill_bytes=request.output_kill_bytes, on_leader_end=self._leader_ended)

    def start(self) -> None:
        """Write the files and start. Raises `Refused` when it cannot even begin."""
        request = self.request
        cwd = enter(request.cwd or self.box.config.get("cwd"))
        for path, content, mode in request.files:
            write_file(path, content, mode)
        self._begun_ns = self._started_ns = time.monotonic_ns()
        if request.kind == "code":
            self._start_code(cwd)
        else:
            self._start_commands()

    def _start_code(self, cwd: str) -> None:
        request = self.request
        work = Work(request.program, request.args, request.env, cwd)
        ready = None if request.stdin or request.stdin_open else self._parking.take(work)
        if ready is not None:
            self._log = ready.log
            self.job.on_silence = self._silent
            self.job.begin(ready.ends, ready.mark, request.timeout_s)
            self.job.follow(ready.pid)
            return
        self._log = log = OrderLog()
        fds = self._open()
        self.job.on_silence = self._silent
        try:
            pid = os.fork()
        except OSError as error:
            self._not_started(error)
            return
        if pid == 0:
            runner.start(work, self._parking.stdio, log, fds)
        self._close_fds()
        self.job.follow(pid)

    def _start_commands(self) -> None:
        request = self.request
        self._commands = [list(argv) for argv in request.argv]
        if request.kind == "command":
            self._commands = [[spawn.SHELL, _SHELL_FLAG, request.program]]
        self._open()
        self._next_command()

    def _open(self) -> Tuple[int, ...]:
        """Pipes for the program; `_fds` are the ends that it gets."""
        request, box, stdin = self.request, self.box, self.box.null
        try:
            ends, outs = pipes()
            if request.stdin or request.stdin_open:
                stdin, self.job.pump = pipe_with(box.loop, request.stdin, keep_open=request.stdin_open)
        except OSError as error:
            raise refusal(error, "cannot open pipes") from None
        self._fds = (stdin, *outs)
        self.job.begin(ends, box.marks.next(), request.timeout_s)
        return self._fds

    def _close_fds(self) -> None:
        for fd in self._fds:
            if fd != self.box.null:
                os.close(fd)
        self._fds = ()

    def _next_command(self) -> None:
        """Start the next command, or end the exec after the last."""
        while self._commands:
            argv = self._commands.pop(0)
            self._started_ns = time.monotonic_ns()
            try:
                pid = spawn.spawn(argv, {**os.environ, **self.request.env}, self._fds)
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENOMEM):
                    self._not_started(error)
                    return
                if not self._command_failed(argv, error):
                    return
                continue
            if not self._commands:
                self._close_fds()
            self.job.follow(pid)
            return
        self._finish(*self._worst())

    def _command_failed(self, argv: List[spawn.Word], error: Exception) -> bool:
        """A command that cannot be started is like one that failed; whether to go on with the next."""
        code = spawn.exit_code_of(error) if isinstance(error, OSError) else spawn.NOT_EXECUTABLE
        reason = error.strerror if isinstance(error, OSError) else str(error)
        text = f"hotbed: cannot run {os.fsdecode(argv[0])[:256]!r}: {reason}\n"
        self.job.capture.add(self.job.capture.streams[1], memoryview(text.encode("utf-8", "surrogateescape")))
        return self._step(code, None)

    def _step(self, exit_code: Optional[int], number: Optional[int]) -> bool:
        """Note how a command ended; whether to go on with the next. If not, the exec is over."""
        took_us = (time.monotonic_ns() - self._started_ns) // 1000
        self._steps.append({"exit_code": exit_code, "signal": number, "duration_us": took_us})
        if self.job.cause is None and self._commands and (exit_code == 0 or self.request.keep_going):
            return True
        self._commands.clear()
        self._finish(*self._worst())
        return False

    def _worst(self) -> Tuple[Optional[int], Optional[int]]:
        """The first failure, else success."""
        for step in self._steps:
            if step["exit_code"] != 0:
                return step["exit_code"], step["signal"]
        return 0, None

    def _leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        self._cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
        self._maxrss_kib = max(self._maxrss_kib, usage.ru_maxrss)
        exit_code, number = decode(status)
        if self.request.kind == "code":
            self._finish(exit_code, number)
        elif self._step(exit_code, number):
            self._next_command()

    def _silent(self) -> None:
        """Both pipes are at their end: a runner that has announced its exit is done but for the kernel's work."""
        ending = self._log.ending() if self._log is not None else None
        if ending is not None and self.job.cause is None:
            self.box.children.forget(self.job.leader)
            exit_code, self._cpu_us, self._maxrss_kib = ending
            self._finish(exit_code, None)

    def _not_started(self, error: OSError) -> None:
        """There may be no further process, or there is no memory for one."""
        self.job.cause = "pids" if error.errno == errno.EAGAIN else "oom"
        self._finish(None, signal.SIGKILL)

    def _stream(self, number: int, data: bytes) -> None:
        self.box.send({"op": "output", "id": self.request.id, "fd": number}, data)

    def _finish(self, exit_code: Optional[int], number: Optional[int]) -> None:
        self._close_fds()
        self.job.finish()
        capture, log = self.job.capture, self._log
        runs = None
        if log is not None:
            runs = log.runs(capture.streams[0].total, capture.streams[1].total)
            log.close()
        kept = capture.kept(runs)
        status, exit_code, number = decide(self.job.evidence(exit_code, number, self._maxrss_kib))
        header: Dict[str, Any] = {
            "op": "result",
            "id": self.request.id,
            "status": status,
            "exit_code": exit_code,
            "signal": number,
            "stdout": len(kept.stdout),
            "stderr": len(kept.stderr),
            "order": kept.order,
            "truncated": kept.truncated,
            "stdout_total": kept.stdout_total,
            "stderr_total": kept.stderr_total,
            "ready_ns": self.box.ready_ns,
            "start_ns": self._begun_ns,
            "end_ns": time.monotonic_ns(),
            "cpu_us": self._cpu_us,
            "maxrss_kib": self._maxrss_kib,
        }
        if self.request.kind == "commands":
            header["steps"] = self._steps
        self._on_result(self)
        self.box.send(header, kept.stdout + kept.stderr if kept.stderr else kept.stdout)


def enter(cwd: Optional[str]) -> str:
    """Make `cwd` the agent's working directory, which what it starts inherits; its path."""
    cwd = cwd or "/work"
    try:
        os.chdir(cwd)
    except OSError as error:
        raise refusal(error, f"cannot enter {cwd}") from None
    return cwd
