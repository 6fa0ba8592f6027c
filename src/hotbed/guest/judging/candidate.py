"""The candidate's side of sealed grading: runs the code in its sandbox and answers calls with plain data.

Nothing here is trusted. The process holds no test, no expected value, no reference, no seed and no further input; all
it could forge is an answer to a question that it has been asked. What keeps honest programs honest is done here: a
fresh module per candidate, arguments that are copies, a CPU limit per call.

The channel starts with one byte, `HERE`: the sandbox is what it should be, and nothing of the candidate has run. From
there on whatever goes wrong is the candidate's doing. Then it takes frames (see `frames`) from the judge:

    {"op":"load", ...}      load the code in this process, answer `[0,"k"]` and serve calls (see `calls`) on this
    channel
    {"op":"prepare", ...}   keep the code, run the trusted prelude only; answered by {"op":"prepared"}
    {"op":"session"} + fd   fork: the child loads the code and serves calls on that descriptor. One session at a time;
                            the one before is killed. Answered by {"op":"session"} once the child exists
    {"op":"ended"}          answered by {"op":"ended","signal":n or null,"exit_code":n or null} of the last session

with load and prepare carrying {"code":bytes,"prelude":bytes,"files":[[path,bytes]...],"module":name,"names":[...],
"cpu_s":float} and a body of code + prelude + files. Sessions fork before any candidate byte has run, so what one does
to its process cannot reach the next; its files can, until the sandbox ends.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any, Dict, List, Optional

from .. import frames, kernel
from . import calls
from .lending import CandidatePeer
from .loading import CPU_SIGNAL, Program

HERE = b"\1"  # no frame begins with it: its first byte would be that of a length beyond any limit


def main(channel: socket.socket, config: Dict[str, Any]) -> None:
    """Serve one judge until it closes its end. `config["cpu"]`, if given, is the CPU to share with that judge."""
    share_cpu(config)
    control = frames.Connection(channel)
    host = _Host(control)
    try:
        channel.sendall(HERE)
        while True:
            header, body, fds = control.receive()
            if header["op"] == "load":
                if os.getpid() == 1:
                    kernel.exit_at(CPU_SIGNAL)
                return serve(channel, Program.parse(header, body))
            host.handle(header, body, fds)
    except (frames.Closed, frames.FrameError, ConnectionError):
        host.end()


def share_cpu(config: Dict[str, Any]) -> None:
    """Stay on one CPU with the other end of the calls: a wake-up across CPUs costs more than a call does."""
    if type(config.get("cpu")) is int:
        try:
            os.sched_setaffinity(0, {config["cpu"]})
        except OSError:
            pass  # a CPU that is not there (any more) is no reason not to run


def serve(channel: socket.socket, program: Program) -> None:
    """Load the program, then answer calls about it until the judge is gone."""
    peer = CandidatePeer(calls.Channel(channel), program)
    try:
        peer.load()
        peer.serve()
    except (calls.Gone, calls.Broken):
        pass


class _Host:
    """The process that forks one session after another and never runs a byte of the candidate."""

    def __init__(self, control: frames.Connection) -> None:
        self._control = control
        self._program: Optional[Program] = None
        self._child = 0
        self._status: Optional[int] = None

    def handle(self, header: Dict[str, Any], body: bytes, fds: List[int]) -> None:
        """One frame of the judge."""
        op = header["op"]
        if op == "prepare":
            self._program = Program.parse(header, body)
            self._program.prepare()
            self._control.send({"op": "prepared"})
        elif op == "session":
            self._begin(fds)
        elif op == "ended":
            self._control.send(dict(self._how(), op="ended"))

    def _begin(self, fds: List[int]) -> None:
        self.end()
        self._status = None
        self._child = os.fork()
        if self._child == 0:
            self._session(fds[0])
        for fd in fds:
            os.close(fd)
        self._control.send({"op": "session"})

    def _session(self, fd: int) -> None:
        try:
            os.setsid()
            self._control.close()
            if self._program is not None:
                serve(socket.socket(fileno=fd), self._program)
                os._exit(0)
        finally:
            os._exit(70)

    def _how(self) -> Dict[str, Any]:
        """How the last session ended; it is given a moment, for its socket closes before its death is known."""
        deadline = time.monotonic() + 0.5
        while self._child and time.monotonic() < deadline:
            if self._reap(os.WNOHANG):
                break
            time.sleep(0.002)
        self.end()
        status = self._status
        if status is None:
            return {"signal": None, "exit_code": None}
        killed = os.WIFSIGNALED(status)
        return {
            "signal": os.WTERMSIG(status) if killed else None,
            "exit_code": None if killed else os.WEXITSTATUS(status),
        }

    def end(self) -> None:
        """Kill the session and what stayed in its process group."""
        if not self._child:
            return
        for kill, target in ((os.killpg, self._child), (os.kill, self._child)):
            try:
                kill(target, signal.SIGKILL)
            except OSError:
                pass
        self._reap(0)

    def _reap(self, flags: int) -> bool:
        try:
            pid, status = os.waitpid(self._child, flags)
        except ChildProcessError:
            pid, status = self._child, 0
        if pid:
            self._child, self._status = 0, status
        return bool(pid)
