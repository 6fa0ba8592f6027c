"""The short way through an exec, and everything that leads off it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest.agent.box import Box
from hotbed.guest.agent.capture import pipes
from hotbed.guest.agent.orderlog import OrderLog
from hotbed.guest.agent.quiet import Running, plain, read_to_the_end
from hotbed.guest.frames import pack
from tests.unit.guest.agent_process import AgentProcess
from tests.unit.guest.conftest import MakeAgent


class Bench:
    """A program's two pipes, their writers, and a socket to the node."""

    def __init__(self) -> None:
        self.node, agent = socket.socketpair()
        self.box = Box(agent, 0, {})
        ends, self.outs = pipes()
        header = {"id": "x", "timeout_s": 5.0, "output_bytes": 1 << 20, "output_kill_bytes": 1 << 20}
        self.running = Running(header, b"", time.monotonic_ns(), 0, OrderLog(), None, ends, [])

    def read(self, **limits: float) -> bool:
        """Whether it came to the end."""
        self.running.header.update(limits)
        return read_to_the_end(self.box, self.running)

    def close(self) -> None:
        """Whatever is still open."""
        self.node.close()
        self.box.listen().close()
        self.box.connection.close()
        for fd in (*self.outs, *(fd for fd in self.running.ends if fd >= 0)):
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
    assert bench.running.printed == [(1, b"out"), (2, b"err")]
    assert bench.running.ends == [-1, -1]


def test_the_deadline_leads_off_it(bench: Bench) -> None:
    """What was written until then is kept."""
    os.write(bench.outs[0], b"so far")
    begun = time.monotonic()

    assert not bench.read(timeout_s=0.05)
    assert time.monotonic() - begun < 3
    assert bench.running.printed == [(1, b"so far")]


def test_a_frame_of_the_node_leads_off_it(bench: Bench) -> None:
    """It may be a cancel; so may its end be."""
    bench.node.close()

    assert not bench.read()


def test_the_end_of_a_child_leads_off_it(bench: Bench) -> None:
    """An orphan that is not reaped counts against what the sandbox may have."""
    bench.box.listen()
    if os.fork() == 0:
        os._exit(0)

    assert not bench.read()
    os.wait()


@pytest.mark.parametrize("limit", ["output_bytes", "output_kill_bytes"])
def test_too_much_output_leads_off_it(bench: Bench, limit: str) -> None:
    """Somebody has to kill it, or to keep no more than the head and the tail; also if it has ended by then."""
    os.write(bench.outs[1], b"x" * 1000)
    for _ in range(2):
        os.close(bench.outs.pop())

    assert not bench.read(**{limit: 999})


def test_one_closed_pipe_is_not_the_end(bench: Bench) -> None:
    """A program may close its stdout and live on; what is left open goes along."""
    os.close(bench.outs.pop(0))

    assert not bench.read(timeout_s=0.02)
    assert bench.running.ends[0] == -1 < bench.running.ends[1]


PLAIN = {
    "op": "exec",
    "id": "x",
    "kind": "code",
    "program": 1,
    "stdin": 0,
    "cwd": None,
    "timeout_s": 1.0,
    "output_bytes": 1,
    "output_kill_bytes": 1,
    "stream": False,
}


@pytest.mark.parametrize("more", [{}, {"last": True}, {"args": ["a"], "env": {"A": "b"}}, {"timeout_s": 1}])
def test_what_asks_for_nothing_special_goes_the_short_way(more: dict[str, Any]) -> None:
    """Just what the node sends for it."""
    assert plain(pack({**PLAIN, **more}, b"1")) == {**PLAIN, **more}


@pytest.mark.parametrize(
    "more",
    [
        {"op": "hello"},
        {"kind": "command"},
        {"stdin": 1},
        {"stream": True},
        {"files": []},
        {"pin": "rng"},
        {"unheard_of": 1},
        {"id": 1},
        {"program": "1"},
        {"timeout_s": "1"},
        {"output_bytes": None},
    ],
)
def test_everything_else_does_not(more: dict[str, Any]) -> None:
    """It has to be served, or refused, by the agent."""
    assert plain(pack({**PLAIN, **more}, b"1")) is None


def test_what_is_not_one_whole_frame_does_not() -> None:
    """Half of one, one and a half, two, and none."""
    frame = pack(PLAIN, b"1")

    assert [plain(data) for data in (b"", frame[:-1], frame[:7], frame + frame, frame + b"x")] == [None] * 5


@pytest.mark.parametrize(
    "fields",
    [{"cwd": "/nowhere"}, {"cwd": "/\0"}, {"cwd": 3}, {"args": [1]}, {"args": 1}, {"env": {"A=": "b"}}, {"env": [1]}],
)
def test_what_cannot_be_run_is_refused_as_on_any_other_way(agent: AgentProcess, fields: dict[str, Any]) -> None:
    """And the sandbox goes on."""
    header = {**PLAIN, "program": 8, "output_bytes": 100, "output_kill_bytes": 100, **fields}
    agent.connection.send(header, b"print(1)")
    answer, _, _ = agent.receive()

    assert (answer["op"], answer["id"]) == ("error", "x")
    assert agent.run("code", "print(1)").stdout == b"1\n"


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
    descriptors = []
    for _ in range(3):
        assert agent.run("code", "print(1)").stdout == b"1\n"
        wait_reaped(agent)
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


@pytest.mark.parametrize(
    "source",
    [
        "print('x' * 70_000)",
        "import sys\nfor i in range(50): print(i); print(i, file=sys.stderr)",
        "import os, time; os.system('echo a'); time.sleep(0.1); os.system('echo b >&2')",
        "import sys; sys.stderr.write('only')",
        "pass",
    ],
)
@pytest.mark.parametrize("limits", [{}, {"output_bytes": 20}])
def test_output_is_told_alike_on_both_ways(make_agent: MakeAgent, source: str, limits: dict[str, int]) -> None:
    """What is kept, what was written, and the order."""
    short, long = make_agent(), make_agent()
    long.run("command", "true")
    told = [agent.run("code", source, **limits) for agent in (short, long)]
    about = ("status", "exit_code", "stdout", "stderr", "order", "truncated", "stdout_total", "stderr_total")

    first, second = ([result.header[name] for name in about] for result in told)
    assert first == second
    assert (told[0].stdout, told[0].stderr) == (told[1].stdout, told[1].stderr)


def wait_reaped(agent: AgentProcess) -> None:
    """Until it has no child."""
    while Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text():
        time.sleep(0.001)


def test_orphans_are_reaped_meanwhile(make_agent: MakeAgent) -> None:
    """They count against what the sandbox may have until then."""
    for last in (False, True):
        agent = make_agent(pids=20)
        result = agent.run("code", ORPHANS, last=last, timeout_s=60.0)
        assert (result.status, result.stdout, result.stderr) == ("ok", b"all\n", b"")
