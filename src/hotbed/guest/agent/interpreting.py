"""An exec of `code` in a template whose code is not this interpreter's: a program for a command that reads it on stdin.

In a parked sandbox the command has been started already and waits there, its own start-up behind it. It is used once,
by the first such exec, and only if that asks for nothing that the waiting process cannot have any more: arguments,
variables, a working directory, a seed. Everything else starts the command afresh, in the same way. With a stdin of its
own the program comes as a file instead, in the form of the command that takes one.

A command line is the template's, not the caller's: a shell reads it, and becomes the command.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import spawn
from .box import Box
from .capture import pipes
from .command_exec import CommandExec
from .execs import Exec, Fds, close, enter
from .filing import write_file
from .pump import Pump, pipe_with
from .request import ExecRequest, Refused, refusal
from .spare import Parking

_FOLDER = "/tmp"


class Waiting(NamedTuple):
    """A command that waits for its program, and our ends of what it has."""

    pid: int
    ends: Sequence[int]
    stdin: int
    mark: Optional[int]


class Waiter:
    """Where it waits, if one does."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._waiting: Optional[Waiting] = None

    def fill(self, command: str) -> None:
        """Start it. If it cannot be, the exec starts it then, and tells why it could not."""
        try:
            enter(self._box.config.get("cwd"))
            self._waiting = start(self._box, command)
        except (OSError, Refused):
            return
        self._box.spare_pids = self.pids

    def pids(self) -> Set[int]:
        """Of who waits here."""
        return {self._waiting.pid} if self._waiting is not None else set()

    def take(self) -> Optional[Waiting]:
        """The one that waits, which is the caller's from now on."""
        waiting, self._waiting = self._waiting, None
        if waiting is None or is_alive(waiting.pid):
            return waiting
        close((*waiting.ends, waiting.stdin))
        return None


def start(box: Box, command: str) -> Waiting:
    """Start a command with a pipe for each stream. Raises OSError."""
    mark = box.marks.next()
    stdin, feed = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(feed, False)
    ends, outs = pipes()
    try:
        pid = spawn.spawn(line(command), dict(os.environ), (stdin, *outs))
    except OSError:
        close((feed, *ends))
        raise
    finally:
        close((stdin, *outs))
    return Waiting(pid, ends, feed, mark)


def line(command: str, *args: str) -> List[spawn.Word]:
    """The arguments of a shell that becomes a command line with further arguments."""
    return [spawn.SHELL, "-c", f'exec {command} "$@"', spawn.SHELL, *args]


def is_alive(pid: int) -> bool:
    """Whether a child has not ended, be it reaped or not."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


class InterpreterExec(CommandExec):
    """One program for the template's interpreter."""

    def __init__(
        self, box: Box, request: ExecRequest, parking: Parking, on_result: Callable[[Exec], None], waiter: Waiter
    ) -> None:
        super().__init__(box, request, parking, on_result)
        self._waiter = waiter
        self._waited = False
        self._file = ""
        self._left = [line(box.config["interpreter"][0], *request.args)]

    def launch(self, cwd: str) -> None:
        """Hand the program to who waits for it, or start the command."""
        if self._brings_stdin():
            self._write_program()
        elif self._suits():
            waiting = self._waiter.take()
            if waiting is not None:
                self._hand_over(waiting)
                return
        super().launch(cwd)

    def _brings_stdin(self) -> bool:
        return bool(self.request.stdin) or self.request.stdin_open

    def _suits(self) -> bool:
        request, home = self.request, self.box.config.get("cwd")
        return not request.args and not request.env and request.cwd in (None, home) and self.channel is None

    def _hand_over(self, waiting: Waiting) -> None:
        self.box.open()
        self._waited = True
        pump = Pump(self.box.loop)
        pump.take(waiting.stdin)
        self.begin(waiting.ends, waiting.mark, pump)
        pump.feed(self.request.program)
        pump.end()
        self._left = []
        self.job.follow(waiting.pid)

    def _write_program(self) -> None:
        """As a file: the command's stdin is the caller's."""
        command = self.box.config["interpreter"][1]
        if not command:
            raise Refused("bad_request", "the template's warm_cmd takes its program on stdin only, and no other stdin")
        self._file = os.path.join(_FOLDER, f"code-{self.box.started}", "main")
        write_file(self._file, self.request.program, 0o644)
        self._left = [line(f"{command} {self._file}", *self.request.args)]

    def open(self) -> Tuple[List[int], Fds, Optional[Pump]]:
        """The same, but that stdin is the program."""
        if self._brings_stdin():
            return super().open()
        try:
            ends, outs = pipes()
            self.box.open()
            stdin, pump = pipe_with(self.box.loop, self.request.program, keep_open=False)
        except OSError as error:
            raise refusal(error, "cannot open pipes") from None
        return ends, (stdin, *outs), pump

    def begin(self, ends: Sequence[int], mark: Optional[int], pump: Optional[Pump] = None, capture: Any = None) -> None:
        """The same; nobody outside fed what a program on stdin is fed with."""
        super().begin(ends, mark, pump, capture)
        if pump is not None and not self._brings_stdin():
            pump.on_fed = None

    def extra(self) -> Dict[str, Any]:
        """Whether it had been started already."""
        if self._file:
            try:
                os.unlink(self._file)
            except OSError:
                pass  # the program was faster
        return {"waited": self._waited}
