"""Checkers of program output."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from hotbed.grading import CallLimits, CheckerReward, StdioCase
from hotbed.grading.outputs import RunOutcome
from hotbed.grading.protocol import check_frame, read_checked
from hotbed.guest import frames
from hotbed.guest.judging import judge
from tests.support.judging import start

CHECKER = """
import os
def check(input, output, answer):
    if output == "die": os._exit(1)
    if output == "raise": raise ValueError
    if output == "hang":
        while True: pass
    return True if output == answer else "yes"
"""


def checked(checker: str, outputs: list[bytes]) -> list[bool] | str:
    cases = [StdioCase(stdin="", stdout="ok")] * len(outputs)
    spec = CheckerReward(cases=cases, checker=checker, limits=CallLimits(cpu_s=0.1, wall_s=0.3))
    ours, theirs = socket.socketpair()
    pid = start(judge.main, theirs, [ours])
    node = frames.Connection(ours)
    ours.settimeout(10)
    node.send(*check_frame("job", spec, [RunOutcome(status="ok", exit_code=0, stdout=out) for out in outputs]))
    try:
        return read_checked(node.receive()[0], len(outputs))
    finally:
        node.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_no_proof_no_credit() -> None:
    """Anything but True is no; an output that kills or hangs the checker costs its own case only."""
    answers = checked(CHECKER, [b"ok", b"no", b"die", b"raise", b"ok", b"hang", b"\xff", b"ok"])

    assert answers == [True, False, False, False, True, False, False, True]


@pytest.mark.parametrize("checker", ["x = 1", "1 / 0", "def check(a, b): raise SystemExit\ncheck(1, 2)"])
def test_a_checker_that_does_not_load_is_the_specs_fault(checker: str) -> None:
    """It has seen no output yet."""
    assert isinstance(checked(checker, [b"ok"]), str)
