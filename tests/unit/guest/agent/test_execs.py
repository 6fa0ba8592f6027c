"""What all execs have in common: where they start, and what they tell."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from hotbed.guest.agent import processes
from hotbed.guest.agent.execs import Exec, close, enter
from hotbed.guest.agent.request import Refused
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


@pytest.mark.parametrize(("number", "held", "cause"), [(12, 1, "oom"), (11, 200, "pids"), (11, 3, None)])
def test_a_host_without_room_is_not_the_sandbox_s_limit(
    monkeypatch: pytest.MonkeyPatch, number: int, held: int, cause: str | None
) -> None:
    """A sandbox far below its own limit has not run into it: its request is refused, to be made again."""
    told: list[object] = []
    work = Exec(SimpleNamespace(config={"limits": {"pids": 256}}), SimpleNamespace(), told.append)  # type: ignore[arg-type]  # as little as it needs
    work.job = SimpleNamespace(leader=0, cause=None)  # type: ignore[assignment]  # likewise
    monkeypatch.setattr(processes, "threads", lambda: held)
    monkeypatch.setattr(work, "finish", lambda *_: told.append("finished"))

    if cause is None:
        with pytest.raises(Refused, match="host") as caught:
            work.not_started(OSError(number, "no"))
        assert caught.value.code == "busy" and not told
    else:
        work.not_started(OSError(number, "no"))
        assert work.job.cause == cause and told == ["finished"]


def test_null_is_not_closed() -> None:
    """It is everybody's."""
    close((0,))

    os.fstat(0)
