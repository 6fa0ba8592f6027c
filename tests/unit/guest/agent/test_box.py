"""What the jobs of a sandbox share."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from hotbed.guest.agent.box import Box, Counter


def test_counters_start_where_they_are_found() -> None:
    """A pooled cgroup has a past."""
    fd = os.memfd_create("events")
    os.pwrite(fd, b"low 0\noom 3\noom_kill 5\n", 0)
    made = Counter(fd, b"oom_kill")
    before = made.read()
    os.pwrite(fd, b"low 0\noom 3\noom_kill 7\n", 0)

    assert (before, made.read()) == (0, 2)
    os.pwrite(fd, b"garbage", 0)
    os.ftruncate(fd, 7)
    assert made.read() == 0
    os.close(fd)
    assert made.read() == 0


def test_no_descriptor_no_counter() -> None:
    """Then nobody knows."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        box = Box(theirs, 0, {})
        box.be_ready()
        box.open()

        assert box.oom_kills is None and box.fork_refusals is None
        box.close()


def test_what_a_group_counted_before_is_not_blamed_on_the_first_program(tmp_path: Path) -> None:
    """A node uses groups again, and their counters go on counting."""
    events = tmp_path / "memory.events"
    events.write_bytes(b"low 0\noom_kill 3\n")
    ours, theirs = socket.socketpair()
    with ours, theirs, events.open() as file:
        box = Box(theirs, 0, {"memory_events_fd": file.fileno()})
        box.be_ready()
        box.open()

        assert box.oom_kills is not None and box.oom_kills.read() == 0
        box.close()


def test_a_box_that_ran_nothing_has_opened_nothing() -> None:
    """The first fork comes before."""
    ours, theirs = socket.socketpair()
    before = len(os.listdir("/proc/self/fd"))
    box = Box(theirs, 0, {})
    after = len(os.listdir("/proc/self/fd"))
    box.open()
    box.open()
    box.close()
    ours.close()

    assert before == after


def test_a_box_rests_until_the_node_or_a_child_wants_something() -> None:
    """With nothing open: an ended child is reaped, and whoever lives on is for the loop."""
    pid = os.fork()
    if pid == 0:  # the test runner has children of its own
        code = 1
        try:
            rest_and_open()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def rest_and_open() -> None:
    """In a process without children."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        box = Box(theirs, 0, {})
        assert box.rest()  # nothing ran yet
        box.listen()
        ended = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 0"], {})
        assert box.rest()
        assert not os.path.exists(f"/proc/{ended}")

        reader, writer = os.pipe()
        os.posix_spawn("/bin/sh", ["sh", "-c", "read x"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
        ours.send(b"x")
        assert not box.rest()

        os.close(writer)
        os.close(reader)
        box.open()
        assert not box.rest()
        box.children.drain()
        box.close()
