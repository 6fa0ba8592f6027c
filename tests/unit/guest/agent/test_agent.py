"""One agent serves many requests at once, survives all of them, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest import frames
from tests.unit.guest.agent_process import AgentProcess, gone
from tests.unit.guest.conftest import MakeAgent


def test_hello_tells_who_is_there(agent: AgentProcess) -> None:
    """The node waits for it before it counts a sandbox as ready."""
    answer = agent.ask("hello")

    assert (answer["op"], answer["pid"]) == ("hello", agent.pid)
    assert answer["ready_ns"] <= time.monotonic_ns()


@pytest.mark.parametrize("op", ["nonsense", None, 7, ["exec"], {"op": "exec"}])
def test_an_unknown_op_is_refused_and_the_agent_lives(agent: AgentProcess, op: object) -> None:
    """A newer node must not be able to end a sandbox by asking too much."""
    agent.connection.send({"op": op, "id": "x"})
    header, _, _ = agent.receive()

    assert (header["op"], header["code"], header["id"]) == ("error", "bad_request", "x")
    assert agent.run("command", "true").status == "ok"


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "nonsense"},
        {"kind": "commands", "argv": []},
        {"kind": "commands", "argv": [[]]},
        {"kind": "commands", "argv": "true"},
        {"kind": "code", "program": -1},
        {"kind": "code", "program": 5},
        {"kind": "code", "args": ["a\0b"]},
        {"kind": "code", "env": {"A": 1}},
        {"kind": "code", "files": [["x"]]},
        {"kind": "code", "timeout_s": "soon"},
    ],
)
def test_a_malformed_exec_is_refused_and_the_agent_lives(agent: AgentProcess, fields: dict[str, Any]) -> None:
    """Whatever is wrong with a request, it is the request that fails."""
    answer = agent.ask("exec", **fields)

    assert (answer["op"], answer["code"]) == ("error", "bad_request")
    assert agent.run("command", "true").status == "ok"


def test_requests_sent_together_are_all_served(agent: AgentProcess) -> None:
    """They arrive in one read; poll would not tell of the second."""
    body = b"true"
    frame = frames.pack({"op": "exec", "id": "a", "kind": "command", "program": len(body)}, body)
    agent.connection.sock.sendall(frame + frame.replace(b'"a"', b'"b"'))

    assert {agent.receive()[0]["id"], agent.receive()[0]["id"]} == {"a", "b"}


@pytest.mark.slow
def test_two_hundred_execs_at_once(agent: AgentProcess) -> None:
    """Nobody waits for anybody."""
    ids = [agent.start_exec("command", f"sleep 0.5; echo {number}") for number in range(200)]
    begun = time.monotonic()
    results = [agent.result() for _ in ids]

    assert sorted(int(result.stdout) for result in results) == list(range(200))
    assert time.monotonic() - begun < 10


@pytest.mark.slow
def test_five_hundred_execs_leave_nothing(pid_1: AgentProcess) -> None:
    """No zombie, no descriptor, no file of ours."""
    count = "ls /proc | grep -c '^[0-9]'"
    pid_1.run("command", "true")
    before = pid_1.run("command", count).stdout
    for _ in range(250):
        pid_1.run("code", "import sys; print(1)")
        pid_1.run("command", "echo 1; (sleep 0 &)")
    pid_1.run("command", "sleep 0.2")  # for the last orphan

    assert pid_1.run("command", count).stdout == before


@pytest.mark.slow
def test_descriptors_stay_flat(agent: AgentProcess) -> None:
    """Counted from outside, where /proc shows the agent's."""
    agent.run("command", "true")
    before = len(os.listdir(f"/proc/{agent.pid}/fd"))
    for number in range(100):
        agent.run("code", "print(1)", stdin=b"x" * number)
        agent.run("commands", argv=[["true"], ["nosuch"]], stdin=b"y")
        agent.ask("open", path="/nonexistent", mode="r")

    assert len(os.listdir(f"/proc/{agent.pid}/fd")) == before


def test_background_processes_live_on_between_execs(agent: AgentProcess, tmp_path: Path) -> None:
    """A server started by one exec is there for the next; its output goes nowhere, and does not hurt it."""
    begun = time.monotonic()
    first = agent.run("command", "(while :; do echo alive; echo x >> beat; sleep 0.05; done) & echo $!")
    pid = int(first.stdout.split()[-1] if first.stdout.split()[-1] != b"alive" else first.stdout.split()[0])
    size = (tmp_path / "beat").stat().st_size if (tmp_path / "beat").exists() else 0
    agent.run("command", "sleep 0.3")

    assert first.status == "ok"
    assert time.monotonic() - begun < 5
    assert (tmp_path / "beat").stat().st_size > size
    assert agent.run("command", f"kill {pid}").status == "ok"


def test_hanging_up_ends_everything(make_agent: MakeAgent, tmp_path: Path) -> None:
    """The node's death must not leave a program running."""
    agent = make_agent()
    agent.run("command", "setsid sleep 60 & echo $! > pid")
    pid = int((tmp_path / "pid").read_text())
    agent.start_exec("command", "sleep 60")
    agent.connection.sock.shutdown(socket.SHUT_RDWR)
    os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)

    assert gone(pid)


def test_cancel_kills_one_exec_and_no_other(agent: AgentProcess) -> None:
    """Its tree dies with it; the neighbour's does not."""
    other = agent.start_exec("command", "sleep 0.4; echo fine")
    name = agent.start_exec("command", "sleep 60 & sleep 60")
    agent.connection.send({"op": "cancel", "id": name})
    results = {r.header["id"]: r for r in (agent.result(), agent.result())}

    assert (results[name].status, results[name].signal) == ("signal", 9)
    assert results[other].stdout == b"fine\n"


def test_signal_reaches_the_program(agent: AgentProcess) -> None:
    """As Ctrl-C would."""
    program = (
        "import os, time\n"
        "try:\n    os.write(1, b'up\\n')\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('caught')"
    )
    name = agent.start_exec("code", program, stream=True)
    header, body, _ = agent.receive()
    agent.connection.send({"op": "signal", "id": name, "signal": 2})

    assert (header["op"], body) == ("output", b"up\n")
    while header["op"] != "result":
        header, body, _ = agent.receive()
    assert (header["status"], body) == ("ok", b"up\ncaught\n")


def test_output_streams_while_it_runs_and_input_reaches_it(agent: AgentProcess) -> None:
    """A conversation, ended by closing stdin."""
    name = agent.start_exec("command", "cat", stream=True, stdin_open=True)
    agent.connection.send({"op": "input", "id": name}, b"one")
    first = agent.receive()
    agent.connection.send({"op": "input", "id": name}, b"two")
    second = agent.receive()
    agent.connection.send({"op": "input", "id": name})
    result = agent.result()

    assert [(h["op"], h["fd"], b) for h, b, _ in (first, second)] == [("output", 1, b"one"), ("output", 1, b"two")]
    assert result.stdout == b"onetwo"


def test_input_for_an_exec_that_has_ended_is_ignored(agent: AgentProcess) -> None:
    """The node cannot know yet."""
    agent.connection.send({"op": "input", "id": "gone"}, b"x")

    assert agent.ask("hello")["op"] == "hello"


def test_an_id_in_use_is_refused(agent: AgentProcess) -> None:
    """Two answers with one name would be no answers."""
    agent.start_exec("command", "sleep 0.2", id="same")
    answer = agent.ask("exec", id="same", kind="command", program=0)

    assert answer["op"] == "error"
    assert agent.result().status == "ok"


def test_a_header_survives_json(agent: AgentProcess) -> None:
    """What the agent sends is plain data."""
    result = agent.run("command", "echo hi")

    assert json.loads(json.dumps(result.header)) == result.header
    assert result.header["start_ns"] <= result.header["end_ns"]
