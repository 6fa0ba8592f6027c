"""Talking to a program, blocking face."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hotbed.errors import DeadlineExceeded, InvalidRequest, NotSupported, SandboxGone
from hotbed.sdk.client import Client
from hotbed.sdk.process import Process
from hotbed.sdk.sandbox import Sandbox


@pytest.fixture
def sandbox(client: Client) -> Iterator[Sandbox]:
    """One that lives."""
    with Sandbox("python", client=client) as made:
        yield made


def text(process: Process) -> bytes:
    """All that is left of its output."""
    return b"".join(data for _, data in process)


def test_a_conversation(sandbox: Sandbox) -> None:
    """Said, heard, said again, ended."""
    with sandbox.process(command="while read x; do echo got $x; done; echo bye >&2") as process:
        process.write("one\n")
        assert process.read(10) == (1, b"got one\n")
        process.write(b"two\n")
        assert process.read(10) == (1, b"got two\n")
        process.end_input()
        assert list(process) == [(2, b"bye\n")]
        assert process.wait().ok and process.ended


def test_more_than_any_buffer_goes_both_ways_at_once(sandbox: Sandbox) -> None:
    """A writer that waits for room hears meanwhile, so that neither end waits for the other."""
    data = bytes(range(256)) * 16_384
    with sandbox.process(command="cat") as process:
        process.write(data)
        process.end_input()

        assert text(process) == data


def test_reading_and_writing_from_two_threads(sandbox: Sandbox) -> None:
    """One hears for both."""
    got: list[bytes] = []
    with sandbox.process(command="cat") as process:
        reader = threading.Thread(target=lambda: got.append(text(process)))
        reader.start()
        for number in range(200):
            process.write(b"%d\n" % number)
        process.end_input()
        reader.join(20)

    assert b"".join(got) == b"".join(b"%d\n" % number for number in range(200))


def test_signals_and_kills(sandbox: Sandbox) -> None:
    """Each is told in the result."""
    with sandbox.process(command="trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done") as process:
        assert process.read(10) == (1, b"up\n")
        process.signal(15)
        assert process.wait(10).exit_code == 7
    with sandbox.process(command="sleep 60") as process:
        process.kill()
        assert process.wait(10).status == "signal"
        process.write("nobody reads")
        process.kill()


def test_leaving_kills_it(sandbox: Sandbox) -> None:
    """And all that it started."""
    with sandbox.process(command="sh -c 'echo $$ > pid; exec sleep 60' & wait"):
        while not sandbox.exec(command="cat pid 2>/dev/null").stdout:
            pass
    gone = "for i in $(seq 200); do kill -0 $(cat pid) 2>/dev/null || exit 0; sleep 0.02; done; exit 1"

    assert sandbox.exec(command=gone).ok


def test_waiting_is_bounded_when_asked(sandbox: Sandbox) -> None:
    """And can be taken up again."""
    with sandbox.process(command="read x; echo $x") as process:
        with pytest.raises(DeadlineExceeded):
            process.read(0.05)
        with pytest.raises(DeadlineExceeded):
            process.wait(0.05)
        process.write("on\n")
        assert process.wait(10).stdout == "on\n"


def test_its_time_is_limited_when_asked(sandbox: Sandbox) -> None:
    """As any exec's."""
    assert sandbox.process(command="sleep 60", timeout_seconds=0.1).wait(10).status == "timeout"


def test_what_cannot_be_started_is_refused_at_once(sandbox: Sandbox, client: Client) -> None:
    """Before a handle is given out."""
    with pytest.raises(NotSupported, match="terminals"):
        sandbox.process(command="true", terminal=(24, 80))
    with pytest.raises(InvalidRequest, match="rows"):
        sandbox.process(command="true", terminal=(0, 80))
    with pytest.raises(InvalidRequest, match="one command"):
        sandbox.process("print()", terminal=(24, 80))
    other = Sandbox.attach(client, sandbox.id)
    sandbox.close()
    with pytest.raises(SandboxGone):
        other.process(command="true")


def test_a_sandbox_that_ends_ends_it(sandbox: Sandbox) -> None:
    """Whoever waits is told."""
    process = sandbox.process(command="sleep 60")
    sandbox.close()

    with pytest.raises(SandboxGone):
        process.wait(10)
