"""A fork of the agent becomes a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from hotbed.guest.agent import child


def in_fork(work: Callable[[], str]) -> str:
    """What `work` writes to its stdout in a fork of this process."""
    end, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            null = os.open("/dev/null", os.O_RDWR)
            kept = child.become(null, out, null, keep=os.open("/dev/null", os.O_RDONLY))
            os.write(1, f"{kept} {work()}".encode())
            code = 0
        finally:
            os._exit(code)
    os.close(out)
    with os.fdopen(end) as result:
        text = result.read()
    assert os.waitpid(pid, 0)[1] == 0
    return text


def test_it_has_its_stdio_what_it_keeps_and_nothing_else() -> None:
    """And no terminal: it leads a session."""

    def work() -> str:
        return f"{sorted(os.listdir('/proc/self/fd'))} {os.getsid(0) == os.getpid()} {oct(os.umask(0))}"

    assert in_fork(work) == "3 ['0', '1', '2', '3', '4'] True 0o22"


def test_signals_are_as_in_a_fresh_interpreter() -> None:
    """Those that a preloaded module changed, too."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    changed = list(child._changed)
    child.note_signals()
    try:
        text = in_fork(lambda: f"{signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL} {signal.pthread_sigmask(0, [])}")
    finally:
        child._changed[:] = changed
        signal.signal(signal.SIGUSR1, before)

    assert text == "3 True set()"
