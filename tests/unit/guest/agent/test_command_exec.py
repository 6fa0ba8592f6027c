"""`command` is a shell line, `commands` are argument lists in turn."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.unit.guest.agent_process import AgentProcess


def test_a_command_is_a_shell_line(agent: AgentProcess) -> None:
    """With the exit code of its last part."""
    result = agent.run("command", "echo out; echo err >&2; X=1; echo $X | tr 1 2; exit 5")

    assert (result.status, result.exit_code) == ("exit", 5)
    assert (result.stdout, result.stderr) == (b"out\n2\n", b"err\n")
    assert "steps" not in result.header


def test_streams_are_merged_in_order_of_arrival(agent: AgentProcess) -> None:
    """Exact when the program gives the agent a moment between its writes."""
    result = agent.run("command", "for i in 1 2 3 4; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done")

    assert result.merged() == b"o1\ne1\no2\ne2\no3\ne3\no4\ne4\n"


def test_commands_stop_at_the_first_failure(agent: AgentProcess) -> None:
    """What comes after it would build on nothing."""
    result = agent.run("commands", argv=[["echo", "a b"], ["sh", "-c", "exit 3"], ["echo", "never"]])

    assert (result.status, result.exit_code, result.stdout) == ("exit", 3, b"a b\n")
    assert [step["exit_code"] for step in result.header["steps"]] == [0, 3]


def test_commands_keep_going_when_asked(agent: AgentProcess) -> None:
    """The exec still tells of the first failure."""
    argv = [["sh", "-c", "exit 3"], ["echo", "x"], ["sh", "-c", "kill -9 $$"], ["echo", "y"]]
    result = agent.run("commands", argv=argv, keep_going=True)

    assert (result.exit_code, result.stdout) == (3, b"x\ny\n")
    assert [(step["exit_code"], step["signal"]) for step in result.header["steps"]] == [
        (3, None),
        (0, None),
        (None, signal.SIGKILL),
        (0, None),
    ]


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["no-such-program"], 127, b"No such file"),
        (["/no/such/program"], 127, b"No such file"),
        ([""], 127, b"No such file"),
        (["./plain"], 126, b"Permission denied"),
        (["./folder"], 126, b"Permission denied"),
        (["./empty"], 126, b"Exec format error"),
        (["echo", "x" * 200_000], 126, b"Argument list too long"),
        (["echo", *["y" * 100_000] * 50], 126, b"Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_a_result(
    agent: AgentProcess, tmp_path: Path, argv: list[str], code: int, words: bytes
) -> None:
    """With a shell's exit codes, and a word on stderr."""
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"\x01\x02")
    (tmp_path / "empty").chmod(0o755)
    result = agent.run("commands", argv=[argv])

    assert (result.status, result.exit_code) == ("exit", code)
    assert words in result.stderr
    assert result.header["steps"][0]["exit_code"] == code


def test_a_huge_command_is_a_result(agent: AgentProcess) -> None:
    """The kernel takes 128 KiB in one argument."""
    result = agent.run("command", "echo " + "x" * 200_000)

    assert (result.status, result.exit_code) == ("exit", 126)
    assert b"Argument list too long" in result.stderr


def test_programs_are_found_on_the_request_s_path(agent: AgentProcess, tmp_path: Path) -> None:
    """Not on the agent's."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mine").write_text("#!/bin/sh\necho found $1\n")
    (tmp_path / "bin" / "mine").chmod(0o755)
    result = agent.run("commands", argv=[["mine", "it"]], env={"PATH": f"/nowhere:{tmp_path}/bin:/bin"})

    assert result.stdout == b"found it\n"


def test_directory_environment_and_umask(agent: AgentProcess, tmp_path: Path) -> None:
    """Those of the request."""
    result = agent.run("command", 'cd .; echo "$A $(pwd) $(umask)"', env={"A": "ü"}, cwd="/tmp")

    assert result.stdout.decode() == "ü /tmp 0022\n"


def test_only_three_descriptors_are_open_and_signals_are_default(agent: AgentProcess) -> None:
    """What Python ignores must not be ignored by what it starts."""
    result = agent.run("command", "ls /proc/self/fd; grep -E 'SigIgn|SigBlk' /proc/self/status; yes | head -n 1")
    *fds, _, blocked, _, ignored, last = result.stdout.split()

    assert (fds, last) == ([b"0", b"1", b"2", b"3"], b"y")
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1) == 0


def test_a_command_leads_a_session(agent: AgentProcess) -> None:
    """Its group can be signalled without the agent."""
    assert agent.run("command", "echo $$; cut -d' ' -f6 /proc/$$/stat | xargs test $$ -eq && echo led").stdout.endswith(
        b"led\n"
    )


def test_stdin_is_shared_by_the_commands(agent: AgentProcess) -> None:
    """The first takes what it wants."""
    data = os.urandom(200_000)
    result = agent.run("commands", argv=[["head", "-c", "10"], ["true"]], stdin=b"0123456789")
    whole = agent.run("command", "wc -c", stdin=data)

    assert result.stdout == b"0123456789"
    assert whole.stdout.strip() == b"200000"


def test_a_program_that_reads_no_stdin_does_not_hold_us_up(agent: AgentProcess) -> None:
    """The rest is dropped with it."""
    result = agent.run("command", "exec <&-; echo done", stdin=b"x" * 1_000_000)

    assert (result.status, result.stdout) == ("ok", b"done\n")
