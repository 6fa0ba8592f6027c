"""Every child is reaped, and told to whoever waits for it."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator

import pytest

from hotbed.guest.agent.children import Alarm, Children, reap_all
from hotbed.guest.agent.loop import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A loop that is closed again."""
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def alarm() -> Iterator[Alarm]:
    """One that is put away again."""
    made = Alarm()
    yield made
    made.close()


def child(code: int) -> int:
    """A process that ends at once."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], {})


def test_an_expected_child_is_told_with_its_status(loop: Loop, alarm: Alarm) -> None:
    """Also when it ended before anybody listened."""
    pid = child(3)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    children = Children(loop, alarm)
    told: list[int] = []
    children.expect(pid, lambda status, _usage: told.append(os.WEXITSTATUS(status)))
    while not told:
        loop.turn()
    children.close()

    assert told == [3]


def test_strangers_are_reaped_too(loop: Loop, alarm: Alarm) -> None:
    """Orphans come to pid 1 without being asked."""
    children = Children(loop, alarm)
    stranger, forgotten, last = child(0), child(0), child(0)
    told: list[int] = []
    children.expect(forgotten, lambda *_: told.append(forgotten))
    children.forget(forgotten)
    children.expect(last, lambda *_: told.append(last))
    while not told or any(os.path.exists(f"/proc/{pid}") for pid in (stranger, forgotten)):
        loop.turn() if not told else children.reap()
    children.close()

    assert told == [last]


def test_the_alarm_is_heard_until_it_is_hushed(alarm: Alarm) -> None:
    """By whoever polls it; a second child rings it again."""
    for _ in range(2):
        pid = child(0)
        assert select.select([alarm.fd], [], [], 10)[0]
        alarm.hush()
        os.waitpid(pid, 0)
        assert not select.select([alarm.fd], [], [], 0)[0]
    alarm.hush()


def test_reaping_tells_whether_anybody_is_left() -> None:
    """In a process of its own: this one may have children that are not ours."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            alone = reap_all()
            reader, writer = os.pipe()
            waiting = os.fork()
            if waiting == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            not_yet = reap_all()
            os.close(writer)
            os.waitid(os.P_PID, waiting, os.WEXITED | os.WNOWAIT)
            code = 0 if (alone, not_yet, reap_all()) == (True, False, True) else 2
        finally:
            os._exit(code)

    assert os.waitpid(pid, 0)[1] == 0


def test_the_handler_is_put_back() -> None:
    """A rehearsal must leave the template as it was."""
    before = signal.getsignal(signal.SIGCHLD)
    Alarm().close()

    assert signal.getsignal(signal.SIGCHLD) == before
