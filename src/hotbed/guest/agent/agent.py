"""The agent: what serves the node in pid 1 of a sandbox, over one socket (`life` tells when).

One loop. A request starts something and is answered when that has ended; no guest is waited for. The node is, for a
bounded time: it sends whole frames and reads what it gets. When its end closes, the sandbox ends, because pid 1 does.

    quiet         the short way of a program that is alone here and ends well, without most of what follows
    loop          calls back what is ready: the socket, output pipes, stdin pipes, SIGCHLD, deadlines
    execs/job     one exec: files, runner or command, capture, deadline, verdict, one `result`
    runner/spare  `code`, in a fork of this interpreter
    spawn         `command` and `commands`
    interpreting  `code` of a template that has another interpreter than this one
    programs      `start`: candidate, judge, environment server
    file_ops      single files, at once (filing); trees, in a child (archive)

The order of imports, the rehearsal (`life.warm`) and the absence of imports inside functions are for speed: each page
that a fork is the first to write costs it a fault.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List

from ..frames import Closed, Header
from . import dialing, file_ops
from .box import Box
from .code_exec import CodeExec
from .command_exec import CommandExec
from .execs import Exec
from .interpreting import InterpreterExec, Waiter
from .memory import MemoryWatch
from .programs import Program
from .quiet import Running
from .request import Refused, parse, pin_of, refusal
from .spare import Parking
from .stdio import Stdio
from .terminal import size_of

Op = Callable[["Agent", Header, bytes, List[int]], None]

STDIO = Stdio()
_PYTHON = ".".join(map(str, sys.version_info[:3]))


class Agent:
    """What is going on in this sandbox, by the node's names for it."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.parking = Parking(box, STDIO)
        self.waiter = Waiter(box)
        self.execs: Dict[str, Exec] = {}
        self.programs: Dict[str, Program] = {}
        self.memory = MemoryWatch(box)

    def serve(self) -> None:
        """Take the frames that have come."""
        while True:
            header, body, fds = self.box.connection.receive()
            try:
                self.handle(header, body, fds)
            finally:
                for fd in fds:
                    os.close(fd)
            if not self.box.connection.buffered():
                return

    def handle(self, header: Header, body: bytes, fds: List[int]) -> None:
        """Do what a frame asks for, or say why not."""
        name = header.get("op")
        try:
            self.parking.clear_for(header)
            if type(name) is not str:
                raise Refused("bad_request", f"op must be a name, not {name!r:.64}")
            if name in _OPS:
                _OPS[name](self, header, body, fds)
            elif name in file_ops.OPS:
                file_ops.OPS[name](self.box, header, fds)
            else:
                raise Refused("bad_request", f"unknown op {name!r:.64}")
        except (Refused, OSError) as error:
            refused = error if isinstance(error, Refused) else refusal(error, f"{name} failed")
            self.refuse(header, refused.code, str(refused))
        except Closed:
            raise
        except Exception as error:  # noqa: BLE001  # boundary: one bad request must not end the sandbox
            self.refuse(header, "bad_request", f"{type(error).__name__}: {error}")

    def refuse(self, header: Header, code: str, message: str) -> None:
        """Answer with an error frame."""
        file_ops.refuse(self.box, header, code, message)

    def hello(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """Who is here."""
        self.box.send(whoami(self.box.ready_ns))

    def exec(self, header: Header, body: bytes, fds: List[int]) -> None:
        """Start an exec; its `result` comes later."""
        request = parse(header, body)
        if len(fds) != (request.pin is not None and not request.ahead):
            raise Refused("bad_request", "a pinned exec comes with one descriptor, its channel, and no other with any")
        if request.id in self.execs:
            raise Refused("bad_request", f"exec {request.id!r:.64} is running")
        work: Exec
        if request.kind == "code" and self.box.config.get("interpreter"):
            work = InterpreterExec(self.box, request, self.parking, self.exec_over, self.waiter)
        elif request.kind == "code" and not self.box.config.get("python", True):
            raise Refused("no_interpreter", "the image has no Python that could run code; give a command")
        elif request.kind == "code":
            work = CodeExec(self.box, request, self.parking, self.exec_over)
        else:
            work = CommandExec(self.box, request, self.parking, self.exec_over)
        work.channel = fds.pop() if fds else None
        self.execs[request.id] = work
        try:
            work.start()
            self.memory.wake()
        except Exception:
            self.execs.pop(request.id, None)
            work.abandon()
            raise

    def take_over(self, running: Running) -> None:
        """Go on with a program that was started on the short way."""
        request = parse(running.header, running.program)
        work = self.execs[request.id] = CodeExec(self.box, request, self.parking, self.exec_over)
        work.take_over(running)

    def pin(self, header: Header, _body: bytes, fds: List[int]) -> None:
        """Have what runs code, or starts a command, pinned before there is any, over the channel that came along."""
        if len(fds) != 1 or not self.parking.pin(fds[0], str(header.get("kind"))):
            raise Refused("no_interpreter", "none waits here that could be pinned ahead")
        self.box.send({"op": "done", "id": header.get("id")})

    def start(self, header: Header, _body: bytes, fds: List[int]) -> None:
        """Start a program on the channel that came along."""
        if len(fds) != 1 + (pin_of(header) is not None):
            raise Refused("bad_request", "start needs one descriptor, the channel, and one more if it is to be pinned")
        program = Program(self.box, header, STDIO, self.program_over)
        self.programs[program.id] = program
        try:
            program.start(*fds)
            self.memory.wake()
        except Exception:
            self.programs.pop(program.id, None)
            raise

    def exec_over(self, done: Exec) -> None:
        """Forget an exec that has ended."""
        self.execs.pop(done.request.id, None)

    def program_over(self, done: Program) -> None:
        """Forget a program that has ended."""
        self.programs.pop(done.id, None)

    def input(self, header: Header, body: bytes, _fds: List[int]) -> None:
        """Bytes for an exec's stdin; none closes it."""
        running = self.execs.get(str(header.get("id")))
        if running is None or running.job.pump is None:
            return  # it ended meanwhile, or reads nothing
        if body:
            running.job.pump.feed(body)
        else:
            running.job.pump.end()

    def ack(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """So much of an exec's output was taken."""
        running = self.execs.get(str(header.get("id")))
        if running is not None:
            running.job.give(int(header["amount"]))

    def resize(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """An exec's terminal has another size now."""
        running = self.execs.get(str(header.get("id")))
        if running is not None and running.terminal is not None:
            try:
                running.terminal.resize(*size_of(header.get("size")))
            except OSError:
                pass  # hung up meanwhile

    def dial(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """Connect to a port in here."""
        dialing.dial(self.box, header)

    def signal(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """Signal the leader's process group, as a terminal would."""
        job = self.job(header)
        if job is not None and job.leader:
            try:
                os.killpg(job.leader, int(header["signal"]))
            except (ProcessLookupError, PermissionError):
                pass

    def cancel(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """Kill an exec or program; its answer says `signal`."""
        job = self.job(header)
        if job is not None:
            job.kill("signal")

    def peek(self, header: Header, _body: bytes, _fds: List[int]) -> None:
        """What a running exec or program has written so far, as far as it is kept."""
        job = self.job(header)
        if job is None:
            raise Refused("not_found", "it has ended")
        kept = job.capture.kept()
        answer = {"op": "peeked", "id": header.get("id"), "stdout": len(kept.stdout), "stderr": len(kept.stderr)}
        self.box.send(answer, kept.stdout + kept.stderr)

    def job(self, header: Header) -> Any:
        """The job of an exec or program that is still running."""
        name = str(header.get("id"))
        running = self.execs.get(name) or self.programs.get(name)
        return running.job if running is not None else None


_OPS: Dict[str, Op] = {
    "hello": Agent.hello,
    "exec": Agent.exec,
    "input": Agent.input,
    "signal": Agent.signal,
    "ack": Agent.ack,
    "resize": Agent.resize,
    "dial": Agent.dial,
    "cancel": Agent.cancel,
    "peek": Agent.peek,
    "pin": Agent.pin,
    "start": Agent.start,
}


def whoami(ready_ns: int) -> Header:
    """The answer to a hello."""
    return {"op": "hello", "ready_ns": ready_ns, "pid": os.getpid(), "python": _PYTHON}
