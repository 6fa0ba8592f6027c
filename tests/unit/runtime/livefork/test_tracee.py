"""Stopping a process that waits, and having it make system calls."""

from __future__ import annotations

import os
import time

import pytest

from hotbed.runtime.livefork.tracee import Busy, Lost, stop_idle
from tests.unit.runtime.livefork.idling import idle


def test_a_stopped_process_goes_on_as_if_nothing_had_been() -> None:
    """Its read is entered again, its memory and signal mask are what they were."""
    with idle(
        "import signal; signal.pthread_sigmask(0, [10])", after="print(signal.pthread_sigmask(0, []))"
    ) as process:
        tracee = stop_idle(process.pid, 3, patience_s=5)
        tracee.begin()
        before = tracee.peek(tracee.scratch, 64)
        found = tracee.with_scratch(b"/proc/self\0", lambda at: None, size=11)
        after = tracee.peek(tracee.scratch, 64)
        tracee.release()

        assert (found, before) == (b"/proc/self\0", after)
        assert process.go_on() == "{<Signals.SIGUSR1: 10>}\ndone\n"


def test_it_makes_system_calls_in_its_own_name() -> None:
    """With its own rights, and their failures are told."""
    with idle(after="print(oct(os.umask(0)))") as process:
        tracee = stop_idle(process.pid, 3, patience_s=5)
        tracee.begin()
        tracee.call("umask", 0o123)
        with pytest.raises(OSError, match="Bad file descriptor"):
            tracee.call("close", 999)
        tracee.release()

        assert process.go_on() == "0o123\ndone\n"


def test_one_that_is_not_idle_is_refused_and_left_running() -> None:
    """It waits for something else."""
    with idle() as process:
        with pytest.raises(Busy):
            stop_idle(process.pid, 5, patience_s=0.01)

        assert process.go_on() == "done\n"


def test_one_that_has_ended_is_lost() -> None:
    """No number is taken for another process."""
    with idle() as process:
        process.go_on()
        time.sleep(0.05)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises((Lost, PermissionError)):
            stop_idle(process.pid, 3, patience_s=0.01)


def test_a_block_that_fails_kills_what_it_held() -> None:
    """Half changed is not let loose."""
    with idle() as process:
        with pytest.raises(ZeroDivisionError), stop_idle(process.pid, 3, patience_s=5) as tracee:
            tracee.begin()
            raise ZeroDivisionError

        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
