"""One exec: its files are written, its program or commands run, and one frame tells how it went."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..credit import Credit
from . import processes
from .box import NULL, Box
from .capture import Capture, Kept, pipes
from .filing import write_file
from .job import Job
from .orderlog import Run
from .pump import Pump, pipe_with
from .request import ExecRequest, Refused, refusal
from .terminal import END_OF_INPUT, Terminal
from .verdict import Verdict, decide

Fds = Tuple[int, ...]

_exit = os._exit  # by a name of its own, so that a rehearsal can leave it out (see `warming`)


class Exec:
    """From the request to the result; `CodeExec` and `CommandExec` know how to run what."""

    job: Job = None  # type: ignore[assignment]  # from `begin` on
    terminal: Optional[Terminal] = None
    channel: Optional[int] = None  # to the supervisor, of an exec that is to be pinned; closed by `hang_up`

    def __init__(self, box: Box, request: ExecRequest, on_result: Callable[[Exec], None]) -> None:
        self.box = box
        self.request = request
        self.cpu_us = self.maxrss_kib = 0
        self._on_result = on_result
        self.begun_ns = 0

    def start(self) -> None:
        """Write the files and start. Raises `Refused` when it cannot even begin."""
        cwd = enter(self.request.cwd or self.box.config.get("cwd"))
        for path, content, mode in self.request.files:
            write_file(path, content, mode)
        self.begun_ns = time.monotonic_ns()
        self.launch(cwd)

    def launch(self, cwd: str) -> None:
        """Start what is to run in `cwd`, which is the agent's working directory now."""
        raise NotImplementedError

    def leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        """The program or command has ended."""
        raise NotImplementedError

    def runs(self, capture: Capture) -> Optional[Sequence[Run]]:
        """The order of the output, where it is better known than by arrival."""
        return None

    def extra(self) -> Dict[str, Any]:
        """What this kind of exec adds to the result."""
        return {}

    def open(self) -> Tuple[List[int], Fds, Optional[Pump]]:
        """Our ends of the output, the program's stdin, stdout and stderr, and what feeds its stdin."""
        request, stdin, pump = self.request, NULL, None
        try:
            if request.terminal is not None:
                return self._on_terminal(*request.terminal)
            ends, outs = pipes()
            if request.stdin or request.stdin_open:
                self.box.open()
                stdin, pump = pipe_with(self.box.loop, request.stdin, keep_open=request.stdin_open)
        except OSError as error:
            raise refusal(error, "cannot open pipes") from None
        return ends, (stdin, *outs), pump

    def _on_terminal(self, rows: int, columns: int) -> Tuple[List[int], Fds, Optional[Pump]]:
        """One descriptor for all; the program opens its own end."""
        self.box.open()
        self.terminal = Terminal(rows, columns)
        pump = Pump(self.box.loop, end_mark=END_OF_INPUT)
        pump.take(os.dup(self.terminal.fd))
        pump.feed(self.request.stdin)
        return [self.terminal.fd], (), pump

    def begin(
        self, ends: Sequence[int], mark: Optional[int], pump: Optional[Pump] = None, capture: Optional[Capture] = None
    ) -> None:
        """Watch output and clock. A program's fork comes before: what is done here, it need not inherit."""
        request = self.request
        capture = capture or Capture(request.output_bytes, self._stream if request.stream else None)
        self.job = Job(self.box, capture, kill_bytes=request.output_kill_bytes, on_leader_end=self.leader_ended)
        self.job.pump, self.job.terminal = pump, self.terminal
        if pump is not None and request.window:
            pump.on_fed = self._fed
        if request.stream and request.window:
            self.job.credit = Credit(request.window)
        self.job.begin(ends, mark, max(0.0, request.timeout_s - (time.monotonic_ns() - self.begun_ns) / 1e9))

    def not_started(self, error: OSError) -> None:
        """There may be no further process, or there is no memory for one. Raises `Refused` if the host has no more."""
        limit = (self.box.config.get("limits") or {}).get("pids", 0)
        if error.errno == errno.ENOMEM:
            self.job.cause = "oom"
        elif processes.threads() >= limit // 2:  # some of those that it had are gone by now
            self.job.cause = "pids"
        elif not self.job.leader:
            raise Refused("busy", "the host has no room for another process; nothing was run")
        else:
            self.job.cause = "signal"
        self.finish(None, int(signal.SIGKILL))

    def hang_up(self) -> None:
        """Nothing further will be pinned. Idempotent."""
        if self.channel is not None:
            os.close(self.channel)
            self.channel = None

    def abandon(self) -> None:
        """Our own failure while starting: let go of everything, tell nothing."""
        self.hang_up()
        if self.job is not None:
            self.job.kill("signal")
            self.job.finish()

    def count(self, usage: resource.struct_rusage) -> None:
        """Add what an ended leader used."""
        self.cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
        self.maxrss_kib = max(self.maxrss_kib, usage.ru_maxrss)

    def finish(self, exit_code: Optional[int], number: Optional[int]) -> None:
        """Tell how it went."""
        self.job.finish()
        kept = self.job.capture.kept(self.runs(self.job.capture))
        header = self._header(kept, decide(self.job.evidence(exit_code, number, self.maxrss_kib)))
        self._on_result(self)
        self.box.send(header, kept.stdout + kept.stderr if kept.stderr else kept.stdout)
        if self.request.last and os.getpid() == 1:
            _exit(0)  # and with it all that is left here: sooner than the node could ask for it

    def _header(self, kept: Kept, verdict: Verdict) -> Dict[str, Any]:
        sizes, totals = (len(kept.stdout), len(kept.stderr)), (kept.stdout_total, kept.stderr_total)
        times, used = (self.box.ready_ns, self.begun_ns), (self.cpu_us, self.maxrss_kib)
        return {**result(self.request.id, verdict, sizes, totals, kept.order, times, used), **self.extra()}

    def _fed(self, count: int) -> None:
        self.box.send({"op": "fed", "id": self.request.id, "bytes": count})

    def _stream(self, number: int, data: bytes) -> None:
        if self.job.credit is not None:
            self.job.credit.spend(len(data))
        self.box.send({"op": "output", "id": self.request.id, "fd": number}, data)


def result(
    name: str,
    verdict: Verdict,
    sizes: Tuple[int, int],
    totals: Tuple[int, int],
    order: Sequence[Sequence[int]],
    times: Tuple[int, int],
    used: Tuple[int, int],
) -> Dict[str, Any]:
    """The header of a result: bytes kept and written of each stream, when it was ready and begun, what it used."""
    status, exit_code, number = verdict
    return {
        "op": "result",
        "id": name,
        "status": status,
        "exit_code": exit_code,
        "signal": number,
        "stdout": sizes[0],
        "stderr": sizes[1],
        "order": order,
        "truncated": sizes != totals,
        "stdout_total": totals[0],
        "stderr_total": totals[1],
        "ready_ns": times[0],
        "start_ns": times[1],
        "end_ns": time.monotonic_ns(),
        "cpu_us": used[0],
        "maxrss_kib": used[1],
    }


def close(fds: Fds) -> None:
    """Close the program's ends of its pipes; /dev/null is everybody's."""
    for fd in fds:
        if fd != NULL:
            os.close(fd)


def enter(cwd: Optional[str]) -> str:
    """Make `cwd` the agent's working directory, which what it starts inherits; its path."""
    cwd = cwd or "/work"
    try:
        os.chdir(cwd)
    except OSError as error:
        raise refusal(error, f"cannot enter {cwd}") from None
    return cwd
