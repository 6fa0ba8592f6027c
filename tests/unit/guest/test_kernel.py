"""System calls by number: errors carry their errno, and the few that touch ourselves do what they say."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from hotbed.guest import kernel


def test_failing_call_raises_with_its_errno() -> None:
    """Every caller decides by it."""
    with pytest.raises(OSError) as caught:
        kernel.setns(-1, 0)

    assert caught.value.errno == errno.EBADF


def test_mount_takes_missing_arguments_as_null() -> None:
    """As mount(2) does; without rights, or without the place, it fails."""
    with pytest.raises(OSError):
        kernel.mount(None, b"/nowhere/at/all", None, kernel.MS_BIND, None)


def test_close_from_leaves_what_is_below() -> None:
    """In a child: it closes pytest's descriptors too."""
    pid = os.fork()
    if pid == 0:
        kernel.close_from(3)
        os._exit(0 if open_descriptors() <= {0, 1, 2} else 1)

    assert os.waitpid(pid, 0)[1] == 0


def test_pidfd_kills_exactly_its_process() -> None:
    """Numbers are used again, descriptors are not."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    pidfd = kernel.pidfd_open(pid)

    kernel.pidfd_kill(pidfd, signal.SIGKILL)

    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        kernel.pidfd_kill(pidfd, signal.SIGKILL)
    os.close(pidfd)


@pytest.mark.root
def test_rights_given_up_are_gone() -> None:
    """Every set, and what an exec could bring back."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        kernel.empty_bounding_set()
        kernel.keep_capabilities(0)
        with open("/proc/self/status", encoding="ascii") as file:
            os.write(writer, "".join(line for line in file if line.startswith("Cap")).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        sets = [line.split()[1] for line in pipe]
    os.waitpid(pid, 0)

    assert sets == ["0" * 16] * 5


@pytest.mark.skipif(not kernel.SUPPORTED, reason="x86_64 system calls")
def test_short_turns_are_a_processes_own() -> None:
    """Its niceness stays, and its children have the usual turns."""
    pid = os.fork()
    if pid == 0:
        before = os.nice(1)
        kernel.take_short_turns(100_000)
        asked = os.sched_getscheduler(0) == os.SCHED_OTHER | os.SCHED_RESET_ON_FORK
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(os.sched_getscheduler(0))
        kept = os.waitpid(grandchild, 0)[1] == 0 and os.nice(0) == before
        os._exit(0 if asked and kept else 1)

    assert os.waitpid(pid, 0)[1] == 0


def test_trimming_the_heap_is_harmless() -> None:
    """Some C libraries cannot."""
    kernel.trim_heap()


def open_descriptors() -> set[int]:
    """By asking for each: listing would open one."""
    found = set()
    for fd in range(1024):
        try:
            os.fstat(fd)
            found.add(fd)
        except OSError:
            continue
    return found
