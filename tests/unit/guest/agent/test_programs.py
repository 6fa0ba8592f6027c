"""Guest programs run on a channel, and their end is told with what they printed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from hotbed.guest.agent import programs
from hotbed.guest.agent.request import Refused
from tests.unit.guest.agent_process import AgentProcess

SOURCE = """
import os, sys
def main(channel, config):
    import json
    if config.get('crash'):
        raise ValueError('crashed')
    if config.get('spin'):
        while True: pass
    print('serving', os.environ.get('A'), sorted(os.listdir('/proc/self/fd')))
    word = channel.recv(100)
    channel.sendall(word.upper())
    sys.exit(config.get('code', 0))
"""


@pytest.fixture(autouse=True)
def program() -> Iterator[None]:
    """A program that the template would have imported."""
    module = ModuleType("hotbed.guest.echo")
    exec(SOURCE, module.__dict__)
    sys.modules["hotbed.guest.echo"] = module
    yield
    del sys.modules["hotbed.guest.echo"]


def start(agent: AgentProcess, **fields: Any) -> socket.socket:
    """Start the program; our end of its channel."""
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    agent.send("start", fds=[theirs.fileno()], program="echo", **fields)
    theirs.close()
    header, _, _ = agent.receive()
    assert header["op"] == "started" and header["pid"] > 0, header
    return ours


def test_it_serves_its_channel_and_its_end_is_told(agent: AgentProcess) -> None:
    """With what it printed, which did not go to the channel."""
    channel = start(agent, config={"code": 3}, env={"A": "b"})
    channel.sendall(b"word")
    answer = channel.recv(100)
    header, body, _ = agent.receive()
    channel.close()

    assert answer == b"WORD"
    assert (header["op"], header["status"], header["exit_code"]) == ("ended", "exit", 3)
    assert body == b"serving b ['0', '1', '2', '3', '4']\n"
    assert (header["stdout"], header["stderr"]) == (len(body), 0)


def test_a_crash_is_told_with_its_traceback(agent: AgentProcess) -> None:
    """On stderr."""
    start(agent, config={"crash": True}).close()
    header, body, _ = agent.receive()

    assert (header["status"], header["exit_code"]) == ("exit", 1)
    assert body.endswith(b"ValueError: crashed\n")


def test_cpu_time_is_limited(agent: AgentProcess) -> None:
    """By the kernel."""
    start(agent, config={"spin": True}, limits={"cpu_s": 0.5}).close()
    header, _, _ = agent.receive()

    assert (header["status"], header["signal"]) == ("signal", 24)


def test_it_can_be_cancelled_and_execs_run_beside_it(agent: AgentProcess) -> None:
    """It is a job like any other."""
    ours, theirs = socket.socketpair()
    name = agent.send("start", fds=[theirs.fileno()], program="echo")
    theirs.close()
    agent.receive()
    beside = agent.run("code", "print('beside')")
    agent.connection.send({"op": "cancel", "id": name})
    header, _, _ = agent.receive()
    ours.close()

    assert beside.stdout == b"beside\n"
    assert (header["op"], header["status"], header["signal"]) == ("ended", "signal", 9)


@pytest.mark.parametrize("name", ["nonsense", "../frames", "frames", "Agent", None, ""])
def test_what_is_no_program_is_refused(agent: AgentProcess, name: object) -> None:
    """A name only, of a module with a main."""
    ours, theirs = socket.socketpair()
    answer = agent.ask("start", fds=[theirs.fileno()], program=name)
    ours.close()
    theirs.close()

    assert answer["op"] == "error"
    assert agent.ask("start", program="echo")["code"] == "bad_request"


def test_find_knows_programs_by_their_main() -> None:
    """`frames` has none."""
    assert programs.find("echo").__name__ == "hotbed.guest.echo"
    with pytest.raises(Refused):
        programs.find("frames")


def test_conceal_hides_the_package_from_what_runs_later() -> None:
    """In a fork, for this process still needs it."""
    pid = os.fork()
    if pid == 0:
        programs.conceal()
        hidden = not any(name.split(".")[0] == "hotbed" for name in sys.modules)
        found = programs.find("echo") is not None
        os._exit(0 if hidden and found else 1)

    assert os.waitpid(pid, 0)[1] == 0
