"""A spare waits without being seen, and ends with its agent."""

from __future__ import annotations

import os

from tests.unit.guest.agent_process import AgentProcess, gone
from tests.unit.guest.conftest import MakeAgent


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


def test_it_times_out_like_any_other(make_agent: MakeAgent) -> None:
    """It was there before the exec began."""
    agent, _ = parked(make_agent)
    result = agent.run("code", "import os\nos.system('sleep 9 &')\nprint('x')\nwhile 1: pass", timeout_s=2.0)

    assert (result.status, result.stdout) == ("timeout", b"x\n")
    assert agent.run("command", "pgrep -x sleep -P 1 || true").status == "ok"
