"""`code` for a command that reads its program on stdin, started for it or waiting already."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest.agent import interpreting
from hotbed.runtime.standing import Interpreter
from tests.unit.guest.agent_process import AgentProcess

SHELL = ("sh -c 'program=$(cat); eval \"$program\"' sh", "sh")


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Agents of a template that has the shell for an interpreter. Outside a sandbox /tmp is not theirs alone."""
    monkeypatch.setattr(interpreting, "_FOLDER", str(tmp_path / "tmp"))
    monkeypatch.setenv("PATH", os.defpath)  # a folder of it that may not be entered is another error
    made: list[AgentProcess] = []

    def one(interpreter: tuple[str, str] = SHELL, **config: Any) -> AgentProcess:
        made.append(AgentProcess(str(tmp_path), interpreter=list(interpreter), **config))
        return made[-1]

    yield one
    for agent in made:
        agent.close()


def test_a_program_runs_with_its_own_arguments_and_variables(make: Any, tmp_path: Path) -> None:
    """In a command that is started for it."""
    agent = make()
    result = agent.run("code", 'echo "$1 $A"; echo err >&2; pwd; exit 3', args=["x y"], env={"A": "b"})

    assert (result.status, result.exit_code, result.stderr) == ("exit", 3, b"err\n")
    assert result.stdout == f"x y b\n{tmp_path}\n".encode() and result.header["waited"] is False


def test_who_waits_in_a_parked_sandbox_is_used_once(make: Any) -> None:
    """The process that ran the first program is not the second's."""
    agent = make(spare=True)
    results = [agent.run("code", "echo $$") for _ in range(3)]

    assert [result.header["waited"] for result in results] == [True, False, False]
    assert len({result.stdout for result in results}) == 3


@pytest.mark.parametrize("asks", [{"args": ["a"]}, {"env": {"A": "b"}}, {"cwd": "/"}, {"stdin": b"x"}])
def test_what_a_waiting_process_cannot_have_is_given_to_a_new_one(make: Any, asks: dict[str, Any]) -> None:
    """And the result says that it was started for it."""
    agent = make(spare=True)

    assert agent.run("code", 'echo "$1 $A $(pwd)"; cat', **asks).header["waited"] is False
    assert agent.run("code", "echo 1").header["waited"] is True  # it waits on


def test_a_program_with_a_stdin_of_its_own_comes_as_a_file(make: Any) -> None:
    """Which is gone afterwards; where the command takes none, it is refused."""
    agent = make()
    result = agent.run("code", 'read -r line; echo "got $line"; echo "$0"', stdin=b"five\n")
    got, name, _ = result.stdout.decode().split("\n")

    assert got == "got five" and not os.path.exists(name)
    refused = make((SHELL[0], "")).ask("exec", b"1x", kind="code", program=1, stdin=1)
    assert (refused["op"], refused["code"]) == ("error", "bad_request") and "stdin" in refused["message"]


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_one_that_died_while_it_waited_is_replaced(make: Any) -> None:
    """Whoever killed it: a program finds an interpreter."""
    agent = make(spare=True)
    agent.run("command", "true")
    for pid in map(int, Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()):
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            time.sleep(0.001)

    assert agent.run("code", "echo alive").stdout == b"alive\n"


def test_another_commands_end_does_not_take_it_along(make: Any) -> None:
    """A job's kill reaches what the job started."""
    agent = make(spare=True)
    agent.run("command", "true")
    assert agent.run("command", "sleep 60", timeout_s=0.2).status == "timeout"

    assert agent.run("code", "echo 1").header["waited"] is True


def test_a_program_that_overruns_is_ended(make: Any) -> None:
    """Also one that had been waited for."""
    begun = time.monotonic()
    result = make(spare=True).run("code", "echo begun; sleep 60", timeout_s=0.3)

    assert (result.status, result.stdout) == ("timeout", b"begun\n") and time.monotonic() - begun < 30


def test_an_interpreter_that_is_not_there_is_a_result(make: Any) -> None:
    """As a command's would be."""
    result = make(("no-such-interpreter -", "no-such-interpreter"), spare=True).run("code", "1")

    assert (result.status, result.exit_code) == ("exit", 127) and b"not found" in result.stderr


def test_a_large_program_reaches_who_reads_it(make: Any) -> None:
    """A pipe holds less; the agent waits for nobody."""
    body = "#" + "x" * 1_000_000 + "\necho done\n"

    assert make(spare=True).run("code", body).stdout == b"done\n"


@pytest.mark.parametrize(
    ("warm_cmd", "program"),
    [("node -", "console.log(process.argv.length, require('fs').readFileSync(0).length)"),
     ("ruby -", "puts [ARGV.size + 2, STDIN.read.size].join(' ')"),
     ("perl -", 'print 2 + @ARGV, " ", length(join("", <STDIN>)), "\\n";')],
)  # fmt: skip
def test_interpreters_wait_and_leave_an_empty_stdin(make: Any, warm_cmd: str, program: str) -> None:
    """As published ones do."""
    if shutil.which(warm_cmd.split()[0]) is None:
        pytest.skip(f"no {warm_cmd}")
    interpreter = Interpreter.of(warm_cmd)
    assert interpreter is not None
    result = make((interpreter.wait, interpreter.file), spare=True).run("code", program)

    assert (result.stdout, result.header["waited"]) == (b"2 0\n", True)


def test_bash_does_not_read_its_script_for_input(make: Any) -> None:
    """The catalog's: a script on stdin would be eaten by the first command that reads."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    from hotbed.node.templates import BASH

    result = make((BASH.wait, BASH.file), spare=True).run(
        "code", "cat\nread -r x || echo end\necho ${BASH_VERSION:+bash}"
    )

    assert (result.stdout, result.header["waited"]) == (b"end\nbash\n", True)
