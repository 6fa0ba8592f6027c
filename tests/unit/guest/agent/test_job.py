"""Deadlines, limits and kills: a job ends when it must, with all that it started, and what it wrote is kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.unit.guest.agent_process import AgentProcess, gone
from tests.unit.guest.conftest import MakeAgent

DAEMONS = (
    "sleep 61 & echo $! >> pids; "
    "setsid sleep 62 & echo $! >> pids; "
    "(setsid sh -c 'sleep 63 & echo $! >> pids; echo $$ >> pids; wait' &) ; "
    "sh -c 'trap \"\" TERM INT HUP; echo $$ >> pids; while :; do sleep 1; done' & "
)


@pytest.fixture(params=[False, True], ids=["child", "pid1"])
def box(request: pytest.FixtureRequest, make_agent: MakeAgent) -> AgentProcess:
    """Both ways to kill: one by one, and a whole pid namespace at once."""
    return make_agent(as_pid_1=request.param)


def test_a_timeout_kills_the_whole_tree_and_keeps_the_output(box: AgentProcess, tmp_path: Path) -> None:
    """Sessions, orphans and those who ignore signals included."""
    begun = time.monotonic()
    result = box.run("command", f"echo partial; {DAEMONS} sleep 64", timeout_s=0.5)
    took = time.monotonic() - begun

    assert (result.status, result.exit_code, result.signal, result.stdout) == ("timeout", None, 9, b"partial\n")
    assert 0.5 <= took < 0.9
    left = box.run("command", "sleep 0.1; for p in $(cat pids); do kill -0 $p 2>/dev/null && echo $p; done; true")
    assert left.stdout == b""
    assert len((tmp_path / "pids").read_text().split()) >= 4


def test_a_timeout_spares_other_jobs_and_their_daemons(box: AgentProcess) -> None:
    """The daemon of an earlier exec, and a neighbour that runs at the same time."""
    earlier = box.run("command", "(setsid sleep 60 >/dev/null 2>&1 & echo $!)")
    neighbour = box.start_exec("command", "(setsid sleep 60 >/dev/null 2>&1 & echo $!); sleep 0.6; echo lived")
    box.start_exec("command", "(setsid sleep 60 &); sleep 60", timeout_s=0.3)
    results = {result.header["id"]: result for result in (box.result(), box.result())}

    spared = [earlier.stdout.strip(), results[neighbour].stdout.split()[0]]
    assert results[neighbour].stdout.endswith(b"lived\n")
    assert box.run("command", "kill " + b" ".join(spared).decode()).status == "ok"


@pytest.mark.parametrize("kind", ["code", "command"])
def test_timeouts_are_accurate(agent: AgentProcess, kind: str) -> None:
    """To some milliseconds, on a machine with time to spare."""
    begun = time.monotonic()
    program = {"code": "import time\nprint('x', flush=True)\ntime.sleep(9)", "command": "echo x; sleep 9"}[kind]
    result = agent.run(kind, program, timeout_s=0.25)

    assert (result.status, result.stdout) == ("timeout", b"x\n")
    assert time.monotonic() - begun < 0.5
    assert result.header["end_ns"] - result.header["start_ns"] >= 250_000_000


def test_a_stopped_program_times_out(agent: AgentProcess) -> None:
    """SIGSTOP is no way to stay."""
    result = agent.run("code", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", timeout_s=0.2)

    assert result.status == "timeout"


@pytest.mark.slow
def test_a_fork_bomb_times_out_and_is_gone(make_agent: MakeAgent) -> None:
    """It grows while it is being killed."""
    box = make_agent(pids=200)
    box.run("command", "true")  # so that the tree is killed one by one
    result = box.run(
        "code", "import os\nfor i in range(60):\n    if os.fork() == 0:\n        break\nwhile 1: pass", timeout_s=0.4
    )

    assert result.status == "timeout"
    assert soon_empty(box)
    bomb = box.run("command", "f() { f & f; }; f; sleep 9", timeout_s=0.3)
    assert bomb.status != "ok"
    assert bomb.status != "timeout" or soon_empty(box)  # else the shell gave up first, and what it left may live on


def soon_empty(box: AgentProcess) -> bool:
    """Whether next to nothing is left, once the dead have been reaped: until then a fork may still be refused."""
    for _ in range(50):
        counted = box.run("command", "sleep 0.1; ls /proc | grep -c '^[0-9]'").stdout
        if counted.strip().isdigit() and int(counted) <= 5:
            return True
    return False


def test_a_pipe_held_open_does_not_hold_up_the_answer(agent: AgentProcess) -> None:
    """The end of the leader is the end."""
    begun = time.monotonic()
    result = agent.run("command", "sleep 5 & echo now")

    assert result.stdout == b"now\n"
    assert time.monotonic() - begun < 2


def test_too_much_output_is_killed(agent: AgentProcess) -> None:
    """Counted over both streams; the head and tail are kept."""
    result = agent.run("command", "yes abcdefg", output_bytes=64, output_kill_bytes=1 << 20)

    assert (result.status, result.exit_code, result.signal) == ("output", None, 9)
    assert len(result.stdout) == 64
    assert result.header["stdout_total"] > 1 << 20


@pytest.mark.slow
def test_a_flood_is_drained_in_flat_memory(agent: AgentProcess) -> None:
    """A gigabyte. The agent here is a fork of the test runner, whose memory counts as its own."""
    before = peak_kib(agent.pid)
    result = agent.run("command", "head -c 1000000000 /dev/zero; echo end", output_bytes=1 << 20, timeout_s=50.0)

    assert result.header["stdout_total"] == 1_000_000_004
    assert result.stdout.endswith(b"\0end\n")
    assert peak_kib(agent.pid) - before < 50_000


def peak_kib(pid: int) -> int:
    """The most memory that a process had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_what_a_dying_daemon_writes_goes_nowhere(agent: AgentProcess) -> None:
    """Output after the answer is nobody's, and no reason for SIGPIPE."""
    agent.run("command", "(sleep 0.2; echo late; echo later; sleep 0.1; echo survived > proof) &")
    agent.run("command", "sleep 0.5")

    assert agent.run("command", "cat proof").stdout == b"survived\n"


def test_a_killed_leader_leaves_its_children_alone(agent: AgentProcess, tmp_path: Path) -> None:
    """Only a kill of ours reaches the tree."""
    result = agent.run("command", "sleep 30 & echo $! > child; kill -9 $$")
    child = int((tmp_path / "child").read_text())

    assert (result.status, result.signal) == ("signal", 9)
    assert agent.run("command", f"kill {child}").status == "ok"
    assert gone(child)
