"""Time as a program pinned at level `full` sees it."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time

import pytest

from hotbed.runtime.replay.request import EPOCH_NS, STEP_NS
from hotbed.runtime.replay.timing import signed
from tests.unit.runtime.replay.supervised import Supervised

pytestmark = pytest.mark.slow


def twice(node: Supervised, program: object) -> str:
    """What a program says at level `full`, checked to be the same a second time."""
    first, _ = node.run(program, level="full")  # type: ignore[arg-type]  # a fixture without a type
    second, _ = node.run(program, level="full")  # type: ignore[arg-type]  # a fixture without a type
    assert first == second
    return first


def test_a_register_s_int_keeps_its_sign() -> None:
    """CPU clocks of processes have negative ids."""
    assert [signed(5), signed(0xFFFFFFFF), signed((1 << 64) - 6)] == [5, -1, -6]


def test_the_clock_begins_at_the_epoch_and_steps(node: Supervised) -> None:
    """In the interpreter that was forked, whose vDSO was there before it was pinned."""
    first, second = twice(node, lambda: f"{time.time_ns()} {time.time_ns()}").split()

    assert EPOCH_NS < int(first) < EPOCH_NS + 10**9
    assert int(second) - int(first) == STEP_NS


def said_by(script: str) -> str:
    """What a shell prints.

    By plain system calls: `subprocess` and `open` read the clock beside the shell, and which is first is not pinned.
    """
    source, sink = os.pipe()
    shell = os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
    os.close(sink)
    said = b""
    while more := os.read(source, 4096):
        said += more
    os.close(source)
    os.waitpid(shell, 0)
    return said.decode()


def test_an_exec_ed_program_reads_the_same_clock(node: Supervised) -> None:
    """A shell's sleep shows in the next command's time."""
    before, after = twice(node, lambda: said_by("date +%s.%N; sleep 0.1; date +%s.%N")).split()

    assert 0.1 <= float(after) - float(before) < 0.11


def sleep_by_deadline() -> str:
    """Python sleeps until an absolute time of the monotonic clock."""
    begun = time.monotonic()
    time.sleep(0.05)
    return f"{time.monotonic() - begun:.9f}"


def wait_for_nothing() -> str:
    """A condition that never comes true, in a loop until its deadline."""
    begun, condition = time.monotonic(), threading.Condition()
    with condition:
        came = condition.wait_for(lambda: False, 0.05)
    return f"{came} {time.monotonic() - begun:.9f}"


def poll_for_nothing() -> str:
    """poll without descriptors is a sleep."""
    begun = time.monotonic()
    select.poll().poll(50)
    return f"{time.monotonic() - begun:.9f}"


def sleep_in_an_event_loop() -> str:
    """epoll with a timeout that runs out."""

    async def nap() -> float:
        begun = time.monotonic()
        await asyncio.sleep(0.05)
        return time.monotonic() - begun

    return f"{asyncio.run(nap()):.9f}"


@pytest.mark.parametrize("program", [sleep_by_deadline, wait_for_nothing, poll_for_nothing, sleep_in_an_event_loop])
def test_waits_take_real_time_and_show_as_their_length(node: Supervised, program: object) -> None:
    """Something else may be getting ready meanwhile; how long exactly it took must not show."""
    begun = time.monotonic()
    shown = float(twice(node, program).split()[-1])

    assert time.monotonic() - begun >= 0.1
    assert 0.05 <= shown < 0.06
