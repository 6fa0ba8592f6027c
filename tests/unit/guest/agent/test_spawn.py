"""A command is started cheaply, with nothing of ours."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from hotbed.guest.agent import spawn


def test_a_name_is_looked_for_along_the_path() -> None:
    """A name with a slash is a file; an empty part of the path is here."""
    assert spawn.candidates("x", "/a::/b") == ["/a/x", "./x", "/b/x"]
    assert spawn.candidates("./x", "/a") == ["./x"]
    assert spawn.candidates("", "/a") == []


def test_it_gets_the_descriptors_it_is_given() -> None:
    """As its 0, 1 and 2, in a session of its own."""
    end, out = os.pipe2(os.O_CLOEXEC)
    null = os.open("/dev/null", os.O_RDWR)
    pid = spawn.spawn(["sh", "-c", "echo $A"], {"PATH": os.defpath, "A": "b"}, (null, out, null))
    os.close(out)
    status = os.waitpid(pid, 0)[1]

    assert (status, os.read(end, 10)) == (0, b"b\n")
    for fd in (end, null):
        os.close(fd)


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT", "SIGHUP", "SIGPIPE"])
def test_what_its_node_ignores_it_does_not(name: str) -> None:
    """A node that a script started in the background ignores SIGINT: control-C must end a program all the same."""
    null, number = os.open("/dev/null", os.O_RDWR), getattr(signal, name)
    before = signal.signal(number, signal.SIG_IGN)
    try:
        pid = spawn.spawn(["sh", "-c", f"kill -{name[3:]} $$"], {"PATH": os.defpath}, (null, null, null))
    finally:
        signal.signal(number, before)
        os.close(null)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -number


@pytest.mark.parametrize(("number", "code"), [(errno.ENOENT, 127), (errno.EACCES, 126), (errno.E2BIG, 126)])
def test_failures_have_a_shell_s_exit_codes(number: int, code: int) -> None:
    """127 for what is not there."""
    assert spawn.exit_code_of(OSError(number, "")) == code
