"""A spare waits without being seen, and ends with its agent."""

from __future__ import annotations

import json
import os
import socket

import pytest

from hotbed.guest import kernel
from hotbed.guest.agent.pinning import CHECK_BYTES
from hotbed.runtime.replay.streams import Streams, first_draw
from tests.unit.guest.agent_process import AgentProcess, gone
from tests.unit.guest.conftest import MakeAgent
from tests.unit.runtime.replay.supervised import SEED, Supervised, supervised


def children_of(pid: int) -> list[int]:
    """Processes whose parent it is."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def parked(make_agent: MakeAgent) -> tuple[AgentProcess, int]:
    """An agent whose spare waits, and the spare."""
    agent = make_agent(spare=True)
    agent.ask("hello")
    (spare,) = children_of(agent.pid)
    return agent, spare


def test_the_first_program_runs_in_the_spare_and_the_second_does_not(make_agent: MakeAgent) -> None:
    """It is used up."""
    agent, spare = parked(make_agent)
    pids = [int(agent.run("code", "import os; print(os.getpid())").stdout) for _ in range(2)]

    assert pids[0] == spare != pids[1]


def test_commands_leave_it_waiting(make_agent: MakeAgent) -> None:
    """It is for programs."""
    agent, spare = parked(make_agent)
    agent.run("command", "true")
    agent.run("command", "sleep 9", timeout_s=0.1)

    assert int(agent.run("code", "import os; print(os.getpid())").stdout) == spare


def test_it_ends_with_the_agent(make_agent: MakeAgent) -> None:
    """However the agent ends."""
    agent, spare = parked(make_agent)
    os.kill(agent.pid, 9)

    assert gone(spare)


@pytest.fixture
def unprivileged() -> None:
    """A filter without that needs a capability that tests may not have."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def pinned_ahead(agent: AgentProcess, node: Supervised, kind: str = "code") -> int:
    """Have its spare pinned, or the starter of a command; the pin's number."""
    pin_id, channel = node.pin_ahead()
    with channel:
        assert agent.ask("pin", kind=kind, fds=[channel.fileno()])["op"] == "done"
    assert json.loads(node.control.recv(1 << 16))["state"] == "ahead"
    return pin_id


@pytest.mark.usefixtures("unprivileged")
def test_one_that_is_pinned_ahead_runs_pinned_code_with_the_seed_that_comes(make_agent: MakeAgent) -> None:
    """It tells what it drew first; a second program has to bring a channel."""
    draw = "import os; print(os.urandom(8).hex(), os.getpid())"
    with supervised() as node:
        agent, spare = parked(make_agent)
        pin_id = pinned_ahead(agent, node)
        node.seed(pin_id)
        first = agent.run("code", draw, pin="rng", ahead=True)
        agent.start_exec("code", draw, pin="rng", ahead=True)
        refused, _, _ = agent.receive()
        expected, _ = node.run(lambda: os.urandom(8).hex())

    assert first.stdout.split() == [expected.encode(), str(spare).encode()]
    assert bytes.fromhex(first.header["check"]) == first_draw(Streams(SEED))[:CHECK_BYTES]
    assert (refused["op"], refused["code"]) == ("error", "busy")


@pytest.mark.usefixtures("unprivileged")
def test_one_that_is_pinned_ahead_is_for_nothing_else(make_agent: MakeAgent) -> None:
    """It ends, though it waits for a seed; the program runs in a process of its own, with the host's randomness."""
    with supervised() as node:
        agent, spare = parked(make_agent)
        pinned_ahead(agent, node)
        result = agent.run("code", "import os; print(os.getpid())")

        assert result.status == "ok" and int(result.stdout) != spare and "check" not in result.header
        assert gone(spare)


@pytest.mark.usefixtures("unprivileged")
def test_a_starter_that_is_pinned_ahead_starts_one_command_with_the_seed_that_comes(make_agent: MakeAgent) -> None:
    """The agent serves meanwhile; a second command has to bring a channel."""
    draw = "od -An -tx1 -N8 /dev/urandom"
    with supervised() as node:
        agent, _ = parked(make_agent)
        pin_id = pinned_ahead(agent, node, "command")
        node.seed(pin_id)
        first = agent.run("command", draw, pin="rng", ahead=True)
        agent.start_exec("command", draw, pin="rng", ahead=True)
        refused, _, _ = agent.receive()
        unpinned = agent.run("command", draw)
        _, channel = node.pin()
        with channel:
            agent.start_exec("command", draw, pin="rng", fds=[channel.fileno()])
        again, body, _ = agent.receive()

    assert first.status == "ok" and first.stdout == body[: again["stdout"]] != unpinned.stdout
    assert bytes.fromhex(first.header["check"]) == first_draw(Streams(SEED))[:CHECK_BYTES]
    assert (refused["op"], refused["code"]) == ("error", "busy")


@pytest.mark.usefixtures("unprivileged")
def test_a_starter_that_nobody_seeds_is_gone_before_the_agent_does_anything_else(make_agent: MakeAgent) -> None:
    """What forks has one thread; and the program is not pinned."""
    with supervised() as node:
        agent, _ = parked(make_agent)
        node.drop(pinned_ahead(agent, node, "command"))
        threads = f"import os; print(len(os.listdir('/proc/{agent.pid}/task')))"
        result = agent.run("code", threads, stdin=b"x")

    assert (result.status, result.stdout) == ("ok", b"1\n")


def test_only_a_spare_can_be_pinned_ahead(make_agent: MakeAgent) -> None:
    """Where none waits, or twice, the node is told."""
    agent = make_agent()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        answer = agent.ask("pin", fds=[theirs.fileno()])

    assert (answer["op"], answer["code"]) == ("error", "no_interpreter")


def test_it_times_out_like_any_other(make_agent: MakeAgent) -> None:
    """It was there before the exec began."""
    agent, _ = parked(make_agent)
    result = agent.run("code", "import os\nos.system('sleep 9 &')\nprint('x')\nwhile 1: pass", timeout_s=2.0)

    assert (result.status, result.stdout) == ("timeout", b"x\n")
    assert agent.run("command", "pgrep -x sleep -P 1 || true").status == "ok"
