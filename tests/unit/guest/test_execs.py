"""What all execs have in common: where they start, and what they tell."""

from __future__ import annotations

import os

import pytest

from hotbed.guest.execs import close, enter
from hotbed.guest.request import Refused
from tests.unit.guest.agent_process import AgentProcess
from tests.unit.guest.conftest import MakeAgent


def test_times_and_usage_are_told(agent: AgentProcess) -> None:
    """In the units that their names say."""
    result = agent.run("code", "x = [i for i in range(2_000_000)]")
    header = result.header

    assert header["ready_ns"] <= header["start_ns"] <= header["end_ns"]
    assert 10_000 < header["cpu_us"] < 10_000_000
    assert header["maxrss_kib"] > 50_000


@pytest.mark.parametrize(("cwd", "code"), [("/no/such", "not_found"), ("/etc/passwd", "bad_path")])
def test_a_directory_that_is_none_is_refused(agent: AgentProcess, cwd: str, code: str) -> None:
    """Nothing has been started then."""
    agent.start_exec("command", "true", cwd=cwd)
    header, _, _ = agent.receive()

    assert (header["op"], header["code"]) == ("error", code)
    with pytest.raises(Refused):
        enter(cwd)


def test_no_room_for_another_process_is_a_result(make_agent: MakeAgent) -> None:
    """The agent's own fork is refused: that is a limit of the sandbox, not a failure of ours."""
    agent = make_agent(pids=2)
    agent.run("command", "sleep 0.2 &")

    assert agent.run("command", "true").status == "pids"
    assert agent.run("code", "1").status == "pids"
    assert agent.run("command", "true", timeout_s=0.1).header["signal"] == 9


def test_a_program_that_may_not_fork_is_told_apart(make_agent: MakeAgent) -> None:
    """By what it says."""
    agent = make_agent(pids=12)
    python = agent.run("code", "import os\nwhile 1:\n    if os.fork() == 0:\n        os.read(os.pipe()[0], 1)")
    thread = agent.run(
        "code", "import threading, time\nwhile 1: threading.Thread(target=time.sleep, args=(1,)).start()"
    )

    assert (python.status, python.exit_code) == ("pids", 1)
    assert thread.status == "pids"


def test_null_is_not_closed() -> None:
    """It is everybody's."""
    close((0,))

    os.fstat(0)
