"""A rehearsal changes nothing that a program could see."""

from __future__ import annotations

import gc
import os
import signal
import sys

from hotbed.guest.agent import life, runner
from hotbed.guest.agent.agent import STDIO
from tests.unit.guest.conftest import MakeAgent


def state() -> list[object]:
    """What a rehearsal could leave changed."""
    return [
        sys.stdin,
        sys.stderr,
        list(sys.argv),
        list(sys.path),
        id(sys.modules["__main__"]),
        dict(os.environ),
        os.getcwd(),
        len(os.listdir("/proc/self/fd")),
        [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)],
        signal.getsignal(signal.SIGCHLD),
        gc.isenabled(),
        runner._exit,
        os.getsid(0),
    ]


def test_warming_leaves_the_template_as_it_was() -> None:
    """In a fork, for the template's streams become the programs' for good."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.chdir("/")
            STDIO.install(None)
            before = state()
            life.warm(4)
            code = 0 if state() == before else 2
        finally:
            os._exit(code)

    assert os.waitpid(pid, 0)[1] == 0


def test_programs_after_a_rehearsal_start_as_new(make_agent: MakeAgent) -> None:
    """The spare of a parked sandbox has rehearsed."""
    program = (
        "import linecache, os, sys\n"
        "print(sorted(k for k in linecache.cache if k != '<code>'), sys.path.count(os.getcwd()), sys.path[0])"
    )
    fresh, parked = make_agent(), make_agent(spare=True)

    assert fresh.run("code", program).stdout == parked.run("code", program).stdout
