"""Runs the way of an exec beforehand, so that it is warm when it counts.

The first run of any code writes: inline caches, free lists, lazily bound symbols; and after a fork each page is a fault
for the first to write to it. In the template, rehearsals make the code hot that every fork inherits. In a parked
sandbox, one rehearsal in the agent and one in its spare take the faults before the request comes.

A rehearsal is the real thing, except that it forks nothing: the agent serves a request whose spare has already run, and
the runner leaves out what cannot be undone, which is why those steps have names of their own.
"""

from __future__ import annotations

import gc
import linecache
import os
import socket
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from ..frames import Connection, pack
from . import child, execs, pinning, quiet, runner, spare
from .box import Box
from .capture import pipes
from .orderlog import OrderLog
from .spare import Spare
from .stdio import Stdio

_PROGRAM = b"import sys\nx = [i for i in range(100)]\nprint(x)\nprint('warm', file=sys.stderr)\n"
_FAILING = b"def f():\n    assert [1] == [2], 'warm'\nf()\n"
_SYS = ("argv", "path", "stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
_REQUEST = {"op": "exec", "id": "warm", "kind": "code", "cwd": "/", "stdin": 0, "env": {"A": "b"}, "timeout_s": 60.0}
_REQUEST.update(program=len(_PROGRAM), output_bytes=1 << 20, output_kill_bytes=1 << 30)
_LEFT_OUT = (
    (child, "_setsid"),
    (child, "_closerange"),
    (runner, "_closerange"),
    (runner, "_join_threads"),
    (runner, "_run_exitfuncs"),
)


class _Over(BaseException):
    """Where the runner would have left."""


def rehearse_agent(make: Callable[[socket.socket, Spare], Any], stdio: Stdio, rounds: int) -> None:
    """Serve requests over a socketpair with agents from `make`, which have a `box` and serve at once.

    Those of programs that pass quietly, and where there is time for more than one, those that need the loop.
    """
    leaving = execs._exit, quiet._exit
    execs._exit = quiet._exit = lambda _code: None  # type: ignore[assignment, return-value]  # it never returns
    try:
        for _ in range(rounds):
            _serve_quietly(make, stdio)
            if rounds > 1:
                _serve_one(make)
    finally:
        execs._exit, quiet._exit = leaving


def _serve_quietly(make: Callable[[socket.socket, Spare], Any], stdio: Stdio) -> None:
    with _asked(stream=False) as theirs:
        agent = make(theirs, already_run())
        quiet.serve(agent.box, stdio, agent.parking)
        agent.box.listen().close()


def _serve_one(make: Callable[[socket.socket, Spare], Any]) -> None:
    with _asked(stream=True) as theirs:
        agent = make(theirs, already_run())
        agent.serve()
        while agent.execs:
            agent.box.loop.turn()
        agent.box.close()


def rehearse_forks(stdio: Stdio, rounds: int) -> None:
    """The whole of the short way, with a runner that is forked. For the template, which has no other child yet."""
    leaving, quiet._exit = quiet._exit, lambda _code: None  # type: ignore[assignment, return-value]  # as above
    try:
        for _ in range(rounds):
            with _asked(stream=False) as theirs:
                box = Box(theirs, 0, {})
                quiet.serve(box, stdio)
                box.rest()  # until it has been reaped
                box.listen().close()
    finally:
        quiet._exit = leaving


@contextmanager
def _asked(*, stream: bool) -> Iterator[socket.socket]:
    """A socket on which a request has come; it must be answered."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(pack({**_REQUEST, "last": not stream, "stream": stream}, _PROGRAM))
        yield theirs
        Connection(ours).receive()


def already_run() -> Spare:
    """A spare that has printed a word to each stream and announced its end."""
    ends, outs = pipes()
    log = OrderLog()
    for bit, fd in enumerate(outs):
        os.write(fd, b"warm\n")
        log.note(bit, 5)
        os.close(fd)
    log.announce(0, 0, 0)
    return Spare(os.getpid(), ends, log, None, os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC))


def rehearse_runner(stdio: Stdio, rounds: int) -> None:
    """Run programs in this process, output to /dev/null, and put back what they changed."""
    with _steps_left_out(), _descriptors_kept() as null, _interpreter_kept():
        for _ in range(rounds if rounds > 1 else 0):  # in the template; a spare need not be ready to be pinned
            rehearse_pin(null)
        for program in (_PROGRAM, _FAILING) * (rounds // 2) or (_PROGRAM,):
            log = OrderLog()
            child.become(null, null, null)
            try:
                runner.run(runner.Work(program), stdio, log)
            except _Over:
                pass
            stdio.reset()
            log.close()


def rehearse_pin(null: int) -> None:
    """Pin this process, but for the filter, which nothing could take off again."""
    order, request = (end.detach() for end in socket.socketpair())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    spare.send_fd(order, theirs.fileno())
    theirs.close()
    channel = spare.receive_fd(request)
    install, pinning._install = pinning._install, lambda *_: os.dup(null)
    try:
        runner.pin(runner.Work(b"", (), {"A": "b"}, pin="rng"), channel)
    finally:
        pinning._install = install
        ours.close()
        os.close(order)
        os.close(request)


@contextmanager
def _steps_left_out() -> Iterator[None]:
    def leave(_code: int) -> None:
        raise _Over

    real = [(module, name, getattr(module, name)) for module, name in _LEFT_OUT]
    for module, name, _ in real:
        setattr(module, name, lambda *_: None)
    leaving, runner._exit = runner._exit, leave  # type: ignore[assignment]  # a rehearsal must come back
    try:
        yield
    finally:
        runner._exit = leaving
        for module, name, step in real:
            setattr(module, name, step)


@contextmanager
def _descriptors_kept() -> Iterator[int]:
    saved = [os.dup(fd) for fd in range(3)]
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    mask = os.umask(0o022)
    try:
        yield null
    finally:
        os.umask(mask)
        os.close(null)
        for fd, copy in enumerate(saved):
            os.dup2(copy, fd)
            os.close(copy)


@contextmanager
def _interpreter_kept() -> Iterator[None]:
    before = {name: getattr(sys, name) for name in _SYS}
    main, path, argv, collecting = sys.modules["__main__"], list(sys.path), list(sys.argv), gc.isenabled()
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(sys, name, value)
        sys.modules["__main__"] = main
        sys.path[:], sys.argv[:] = path, argv
        linecache.cache.pop(runner.FILENAME, None)
        if not collecting:
            gc.disable()
