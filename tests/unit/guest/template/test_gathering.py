"""Code that is gathered is the same code elsewhere: it runs, fails and is shown as before."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable

import pytest

from hotbed.guest.template import gathering


def in_fork(check: Callable[[], bool]) -> int:
    """The status of a child that makes this check: it must not fill the test run's own heap."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = int(not check())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def small(number: int) -> int:
    """Calls another."""
    return twice(number) + 1


def twice(number: int) -> int:
    """Has a function of its own, and a closure."""
    return sum(each + number for each in (lambda: [number, 0])())


def failing() -> None:
    """Its line is known."""
    small(1)
    raise ValueError("here")


def uncalled() -> None:
    """Not rehearsed."""


def places() -> list[int]:
    """Where the code of the gathered functions is."""
    return [id(function.__code__) for function in (small, twice)]


def copied_and_equal() -> bool:
    before, was = places(), uncalled.__code__
    gathered = gathering.gather(lambda: small(3))
    return gathered >= 2 and places() != before and uncalled.__code__ is was and small(3) == 10


def shown_as_before() -> bool:
    def attempt() -> str:
        try:
            failing()
        except ValueError:
            return "".join(traceback.format_exc().splitlines()[-3:])
        return ""

    before = attempt()
    gathering.gather(attempt)
    return before != "" and attempt() == before


def still_gathered_when_rehearsal_fails() -> bool:
    try:
        gathering.gather(failing)
    except ValueError:
        return gathering.gather(lambda: small(1)) >= 2
    return False


@pytest.mark.parametrize("check", [copied_and_equal, shown_as_before, still_gathered_when_rehearsal_fails])
def test_gathering(check: Callable[[], bool]) -> None:
    """As each check is named."""
    assert in_fork(check) == 0


_STREWN = """
import sys
from hotbed.guest.template import gathering
functions = []
for number in range(40):
    exec("def f(x): return x + " + " + ".join(["x"] * (number * 9 % 40 + 1)), names := {})
    functions.append(names["f"])
    functions.append(bytes(3000))
functions = functions[::2]
def pages():
    return len({id(function.__code__) // 4096 for function in functions})
before = pages()
gathering.gather(lambda: [function(1) for function in functions])
print(before, pages(), [function(1) for function in functions] == [number * 9 % 40 + 2 for number in range(40)])
"""


def test_what_was_strewn_lies_on_few_pages() -> None:
    """In an interpreter of its own: a test run's heap has holes of any size."""
    told = subprocess.run([sys.executable, "-c", _STREWN], check=True, capture_output=True, text=True, timeout=60)
    before, after, right = told.stdout.split()

    assert int(after) < 12 <= int(before) and right == "True"
