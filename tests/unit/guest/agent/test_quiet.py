"""The short way through an exec, and everything that leads off it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotbed.guest.agent.capture import Capture, pipes
from hotbed.guest.agent.quiet import read_to_the_end
from hotbed.guest.frames import pack
from tests.unit.guest.agent_process import AgentProcess
from tests.unit.guest.conftest import MakeAgent


class Bench:
    """Two pipes, their writers, and a socket to the node."""

    def __init__(self) -> None:
        self.ends, self.outs = pipes()
        self.node, self.agent = socket.socketpair()
        self.capture = Capture(1 << 20)

    def read(self, *, seconds: float = 5.0, most_bytes: int = 1 << 20) -> bool:
        """Whether it came to the end."""
        return read_to_the_end(self.capture, self.ends, (self.agent.fileno(),), seconds=seconds, most_bytes=most_bytes)

    def close(self) -> None:
        """Whatever is still open."""
        self.node.close()
        self.agent.close()
        for fd in (*self.outs, *(stream.fd for stream in self.capture.streams)):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """One, and nothing left of it."""
    made = Bench()
    yield made
    made.close()


def test_output_is_read_to_its_end_and_the_pipes_closed(bench: Bench) -> None:
    """In the order of arrival."""
    for fd, text in zip(bench.outs, (b"out", b"err"), strict=True):
        os.write(fd, text)
        os.close(fd)
    bench.outs.clear()

    assert bench.read()
    kept = bench.capture.kept()
    assert (kept.stdout, kept.stderr) == (b"out", b"err")
    assert [stream.fd for stream in bench.capture.streams] == [-1, -1]


def test_the_deadline_leads_off_it(bench: Bench) -> None:
    """What was written until then is kept."""
    os.write(bench.outs[0], b"so far")
    begun = time.monotonic()

    assert not bench.read(seconds=0.05)
    assert time.monotonic() - begun < 3
    assert bench.capture.kept().stdout == b"so far"


def test_a_frame_of_the_node_leads_off_it(bench: Bench) -> None:
    """It may be a cancel; so may its end be."""
    bench.node.close()

    assert not bench.read()


def test_too_much_output_leads_off_it(bench: Bench) -> None:
    """Somebody has to kill it."""
    os.write(bench.outs[1], b"x" * 1000)

    assert not bench.read(most_bytes=999)


def test_one_closed_pipe_is_not_the_end(bench: Bench) -> None:
    """A program may close its stdout and live on; what is left open stays with the capture."""
    os.close(bench.outs.pop(0))

    assert not bench.read(seconds=0.02)
    assert bench.capture.streams[0].fd == -1
    assert bench.capture.streams[1].fd == bench.ends[1]


@pytest.mark.parametrize(
    ("source", "status", "exit_code", "stdout"),
    [
        ("print('well')", "ok", 0, b"well\n"),
        ("print('so'); raise SystemExit(3)", "exit", 3, b"so\n"),
        ("import os; print('cut', flush=True); os.kill(os.getpid(), 9)", "signal", None, b"cut\n"),
        ("import time; print('slow', flush=True); time.sleep(60)", "timeout", None, b"slow\n"),
        ("import os; os.close(1); os.close(2); os._exit(0)", "ok", 0, b""),
        ("import os, time; os.close(1); os.close(2); time.sleep(60)", "timeout", None, b""),
        ("while 1: print('x' * 1000)", "output", None, None),
        (
            "import os\nif os.fork() == 0:\n    import time; time.sleep(9)\nprint('soon')",
            "ok",
            0,
            b"soon\n",
        ),
    ],
)
def test_an_exec_alone_tells_what_any_other_would(
    make_agent: MakeAgent, source: str, status: str, exit_code: int | None, stdout: bytes | None
) -> None:
    """Whether or not it went the short way: the first of each agent does, and no other after a command."""
    last, kept, other = make_agent(), make_agent(), make_agent()
    limits = {"timeout_s": 1.0, "output_kill_bytes": 1 << 20}
    other.run("command", "true")
    results = [
        agent.run("code", source, last=flag, **limits) for agent, flag in ((last, True), (kept, False), (other, False))
    ]

    assert {(result.status, result.header["exit_code"]) for result in results} == {(status, exit_code)}
    if stdout is not None:
        assert {result.stdout for result in results} == {stdout}


def test_a_kept_sandbox_goes_the_short_way_again_and_again(agent: AgentProcess) -> None:
    """As long as nobody is left from the exec before: it opens nothing, and every program is reaped."""
    children, descriptors = f"/proc/{agent.pid}/task/{agent.pid}/children", []
    for _ in range(3):
        assert agent.run("code", "print(1)").stdout == b"1\n"
        while Path(children).read_text():
            time.sleep(0.001)
        descriptors.append(os.listdir(f"/proc/{agent.pid}/fd"))

    assert descriptors == [descriptors[0]] * 3 and "7" not in descriptors[0]
    left = "import os\nif os.fork() == 0:\n    os.close(1)\n    os.close(2)\n    os.execlp('sleep', 'sleep', '60')"
    assert agent.run("code", left).status == "ok"
    assert agent.run("code", "print(2)").stdout == b"2\n"
    assert agent.run("command", "echo 3").stdout == b"3\n"


ORPHANS = """
import os
for _ in range(60):
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
print("all")
"""


def test_what_is_asked_together_with_a_program_does_not_wait_for_its_end(make_agent: MakeAgent) -> None:
    """Two requests that arrive at once: the second has been read by the time that the first is begun."""
    agent = make_agent()
    frames = [
        pack({"op": "exec", "id": name, "kind": kind, "program": len(program), "timeout_s": 30.0}, program)
        for name, kind, program in (
            ("waits", "code", b"import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"),
            ("lets go", "command", b"touch go"),
        )
    ]
    agent.connection.sock.sendall(b"".join(frames))
    ended = {str(agent.receive()[0]["id"]) for _ in frames}

    assert ended == {"waits", "lets go"}


def test_orphans_are_reaped_meanwhile(make_agent: MakeAgent) -> None:
    """They count against what the sandbox may have until then."""
    for last in (False, True):
        agent = make_agent(pids=20)
        result = agent.run("code", ORPHANS, last=last, timeout_s=60.0)
        assert (result.status, result.stdout, result.stderr) == ("ok", b"all\n", b"")
