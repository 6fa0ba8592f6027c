"""An exec of `command` (sh -c) or `commands` (argument lists, one after the other)."""

from __future__ import annotations

import errno
import os
import resource
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import pinned_spawn, runner, spawn, terminal
from .box import Box
from .execs import Exec, Fds, close
from .pinned_spawn import Starter
from .pinning import NotPinned
from .request import ExecRequest, Refused
from .spare import Parking
from .verdict import decode

_NO_ROOM = (errno.EAGAIN, errno.ENOMEM)


class CommandExec(Exec):
    """Commands in turn, until one fails or the last has ended."""

    def __init__(self, box: Box, request: ExecRequest, parking: Parking, on_result: Callable[[Exec], None]) -> None:
        super().__init__(box, request, on_result)
        self._parking = parking
        self._steps: List[Dict[str, Optional[int]]] = []
        self._left: List[List[spawn.Word]] = [list(argv) for argv in request.argv]
        if request.kind == "command":
            self._left = [[spawn.SHELL, "-c", request.program]]
        self._fds: Fds = ()
        self._step_ns = 0
        self._check = b""

    def launch(self, cwd: str) -> None:
        """Start the first."""
        self.box.open()
        ends, self._fds, pump = self.open()
        self.begin(ends, self.box.marks.next(), pump)
        self._next()

    def _next(self) -> None:
        """Start the next command that can be started, or end the exec after the last."""
        while self._left:
            argv = self._left.pop(0)
            self._step_ns = time.monotonic_ns()
            try:
                pid = self._start(argv)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._let_go()
                    self.not_started(error)
                    return
                self._explain(argv, error)
                if not self._goes_on(spawn.exit_code_of(error), None):
                    break
                continue
            if not self._left:
                self._let_go()
            self.job.follow(pid)
            return
        self._let_go()
        self.finish(*self._outcome())

    def _start(self, argv: List[spawn.Word]) -> int:
        if self.terminal is not None:
            env = {**os.environ, "TERM": terminal.TYPE, **self.request.env}
            return spawn.spawn_on(argv, env, self.terminal.path)
        env = {**os.environ, **self.request.env}
        if self.request.pin is None:
            return spawn.spawn(argv, env, self._fds)
        starter = self._starter()
        try:
            return starter.start(argv, env, self._fds)
        except NotPinned as error:
            raise Refused("failed", f"it could not be pinned: {error}") from None
        finally:
            self._check = starter.check

    def _starter(self) -> Starter:
        """The thread that will start a pinned command."""
        if self.channel is None:
            waiting = self._parking.take_starter()
            if waiting is None:
                raise Refused("busy", "what was pinned ahead is gone; nothing was run")
            return waiting
        if self.box.started == 1 and not self._steps and not self._parking.filled:
            pinned_spawn.spend_a_number(os.environ)
        return pinned_spawn.begin(runner.PINNING, self.channel, self.request.pin or "rng")

    def _explain(self, argv: List[spawn.Word], error: OSError) -> None:
        """A command that cannot be started is like one that failed: its stderr says why."""
        self.job.capture.add(self.job.capture.streams[1], memoryview(spawn.explanation(argv, error)))

    def _goes_on(self, exit_code: Optional[int], number: Optional[int]) -> bool:
        """Note how a command ended; whether there is a next."""
        took_us = (time.monotonic_ns() - self._step_ns) // 1000
        self._steps.append({"exit_code": exit_code, "signal": number, "duration_us": took_us})
        return bool(self._left) and self.job.cause is None and (exit_code == 0 or self.request.keep_going)

    def _outcome(self) -> Tuple[Optional[int], Optional[int]]:
        """The first failure, else success."""
        for step in self._steps:
            if step["exit_code"] != 0:
                return step["exit_code"], step["signal"]
        return 0, None

    def leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        """One command has ended."""
        self.count(usage)
        if self._goes_on(*decode(status)):
            self._next()
            return
        self._let_go()
        self.finish(*self._outcome())

    def _let_go(self) -> None:
        close(self._fds)
        self._fds = ()
        self.hang_up()

    def extra(self) -> Dict[str, Any]:
        """How each command ended; and what its starter drew first, if that was pinned ahead (see `CodeExec.extra`)."""
        steps: Dict[str, Any] = {"steps": self._steps} if self.request.kind == "commands" else {}
        return {**steps, "check": self._check.hex()} if self.request.ahead else steps
