"""Open files: told apart, and opened again."""

from __future__ import annotations

import os
from pathlib import Path

from hotbed.runtime.livefork import handles
from hotbed.runtime.livefork.tracee import stop_idle
from tests.unit.runtime.livefork.idling import idle


def test_files_are_opened_again_where_they_were(tmp_path: Path) -> None:
    """At their numbers and offsets; those that were one file are one again."""
    path = tmp_path / "data"
    path.write_text("abcdefgh")
    setup = f"f = os.open({str(path)!r}, os.O_RDWR); os.dup2(f, 9); os.lseek(f, 3, 0); os.dup2(os.open('/tmp', 0), 12)"
    look = "print(os.read(9, 2), os.lseek(4, 0, 1), os.readlink('/proc/self/fd/12'))"
    with idle(setup, after=look) as one, idle(after=look) as other:
        found, problems = handles.survey(one.pid, os.getpid())
        vessel = stop_idle(other.pid, 3, patience_s=5)
        vessel.begin()
        handles.open_again(vessel, found)
        vessel.release()

        assert problems == ()
        assert {handle.fd: handle.like for handle in found} == {4: None, 5: None, 9: 4, 12: 5}
        assert one.go_on() == other.go_on() == "b'de' 5 /tmp\ndone\n"


def test_what_has_no_path_is_named() -> None:
    """Each by its kind and number."""
    setup = "import select, socket; k = [socket.socket(), select.epoll(), os.pipe(), os.memfd_create('m')]"
    with idle(setup) as process:
        found, problems = handles.survey(process.pid, os.getpid())

        assert found == ()
        assert [problem.split(": ")[1] for problem in problems] == [
            "a socket",
            "eventpoll",
            "a pipe",
            "a pipe",
            "a file that has been deleted",
        ]
