"""Every child is reaped, and told to whoever waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from hotbed.guest.agent.children import Children
from hotbed.guest.agent.loop import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed again."""
    made = Loop()
    yield made
    made.close()


def child(code: int) -> int:
    """A process that ends at once."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], {})


def test_an_expected_child_is_told_with_its_status(loop: Loop) -> None:
    """Also when it ended before anybody listened."""
    pid = child(3)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    children = Children(loop)
    told: list[int] = []
    children.expect(pid, lambda status, _usage: told.append(os.WEXITSTATUS(status)))
    while not told:
        loop.turn()
    children.close()

    assert told == [3]


def test_strangers_are_reaped_too(loop: Loop) -> None:
    """Orphans come to pid 1 without being asked."""
    children = Children(loop)
    stranger, forgotten, last = child(0), child(0), child(0)
    told: list[int] = []
    children.expect(forgotten, lambda *_: told.append(forgotten))
    children.forget(forgotten)
    children.expect(last, lambda *_: told.append(last))
    while not told or any(os.path.exists(f"/proc/{pid}") for pid in (stranger, forgotten)):
        loop.turn() if not told else children.reap()
    children.close()

    assert told == [last]


def test_the_handler_is_put_back(loop: Loop) -> None:
    """A rehearsal must leave the template as it was."""
    before = signal.getsignal(signal.SIGCHLD)
    Children(loop).close()

    assert signal.getsignal(signal.SIGCHLD) == before
