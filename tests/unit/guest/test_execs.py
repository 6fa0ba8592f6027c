"""What all execs have in common: where they start, and what they tell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.guest.execs import close, enter
from hotbed.guest.request import Refused
from tests.unit.guest.agent_process import AgentProcess


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


def test_no_room_for_another_process_is_a_result(agent: AgentProcess, tmp_path: Path) -> None:
    """The agent's own fork is refused: that is a limit of the sandbox, not a failure of ours."""
    del tmp_path
    if os.geteuid() == 0:
        pytest.skip("root is not limited")
    import resource

    resource.prlimit(agent.pid, resource.RLIMIT_NPROC, (1, 1))

    assert agent.run("command", "true").status == "pids"
    assert agent.run("code", "1").status == "pids"


def test_null_is_not_closed() -> None:
    """It is everybody's."""
    close((0,))

    os.fstat(0)
