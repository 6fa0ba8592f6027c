"""`code` is a program of its own, in the warm interpreter."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.guest.agent.code_exec import CodeExec
from hotbed.guest.agent.orderlog import OrderLog
from hotbed.guest.agent.request import ExecRequest
from hotbed.guest.agent.spare import Spare
from tests.unit.guest.agent_process import AgentProcess, gone
from tests.unit.guest.conftest import MakeAgent


@pytest.fixture(params=["fork", "spare"])
def box(request: pytest.FixtureRequest, make_agent: MakeAgent) -> AgentProcess:
    """A fork on request and a spare must not be told apart."""
    return make_agent(spare=request.param == "spare")


def test_output_and_exit_code(box: AgentProcess) -> None:
    """The least that there is."""
    result = box.run("code", "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")

    assert (result.status, result.exit_code, result.signal) == ("exit", 3, None)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


def test_merged_order_is_the_order_of_the_program(box: AgentProcess) -> None:
    """Two pipes do not tell; the runner's own account does."""
    program = "import sys\nfor i in range(300):\n    print('o', i)\n    print('e', i, file=sys.stderr)"
    result = box.run("code", program)

    assert result.merged() == b"".join(b"o %d\ne %d\n" % (i, i) for i in range(300))


def test_output_of_children_falls_back_to_arrival(box: AgentProcess) -> None:
    """The account does not add up then; nothing may be lost or invented."""
    result = box.run("code", "import os\nprint('a')\nos.system('echo b; echo c >&2')\nprint('d')")

    assert (result.stdout, result.stderr) == (b"a\nb\nd\n", b"c\n")
    assert sorted(result.merged()) == sorted(b"a\nb\nc\nd\n")


def test_arguments_environment_and_directory(box: AgentProcess, tmp_path: Path) -> None:
    """Those of the request, over those of the sandbox."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "neighbour.py").write_text("here = __file__")
    program = "import os, sys, neighbour\nprint(sys.argv, os.environ['A'], os.getcwd(), neighbour.here)"
    result = box.run("code", program, args=["x", "y"], env={"A": "b"}, cwd=str(tmp_path / "sub"))

    where = f"{tmp_path}/sub"
    assert result.stdout.decode() == f"['main.py', 'x', 'y'] b {where} {where}/neighbour.py\n"


def test_one_exec_does_not_see_another(box: AgentProcess) -> None:
    """Names, modules, environment, directory, signal handlers: each starts from the template's."""
    box.run(
        "code",
        "import os, sys, signal, json\nx = 1\njson.spoiled = True\nos.environ['LEAK'] = '1'\nos.chdir('/')\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsys.path.append('/leak')",
    )
    result = box.run(
        "code",
        "import os, sys, signal, json\n"
        "print('x' in globals(), hasattr(json, 'spoiled'), 'LEAK' in os.environ, os.getcwd() == '/',"
        " signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, '/leak' in sys.path)",
    )

    assert result.stdout == b"False False False False True False\n"


def test_stdin_is_the_request_s(box: AgentProcess) -> None:
    """More than a pipe holds, too."""
    data = os.urandom(300_000)
    result = box.run("code", "import sys, hashlib\nprint(hashlib.md5(sys.stdin.buffer.read()).hexdigest())", stdin=data)
    nothing = box.run("code", "import sys\nprint(repr(sys.stdin.read()))")

    assert result.stdout == b"%s\n" % md5(data)
    assert nothing.stdout == b"''\n"


def test_only_three_descriptors_are_open(box: AgentProcess) -> None:
    """Nothing of the agent's is within reach."""
    result = box.run("code", "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:4])")

    assert result.stdout == b"['0', '1', '2', '3']\n"


def test_nothing_of_ours_can_be_imported(box: AgentProcess) -> None:
    """The guest package is the template's."""
    result = box.run("code", "import sys\nprint([name for name in sys.modules if 'hotbed' in name])")

    assert result.stdout == b"[]\n"


def test_it_leads_a_session_of_its_own(box: AgentProcess) -> None:
    """A signal to its group must not reach the agent."""
    result = box.run("code", "import os\nprint(os.getsid(0) == os.getpid() == os.getpgrp(), oct(os.umask(0)))")

    assert result.stdout == b"True 0o22\n"


def test_random_numbers_differ_between_execs_and_spares(make_agent: MakeAgent) -> None:
    """All of them are forks of one process."""
    agents = [make_agent(), make_agent(spare=True), make_agent(spare=True)]
    program = "import random, uuid, tempfile\nprint(random.random(), uuid.uuid1().hex, tempfile.mktemp())"
    lines = [agent.run("code", program).stdout for agent in agents for _ in range(2)]

    assert len(set(lines)) == len(lines)
    assert len({line.split()[0] for line in lines}) == len(lines)


def test_a_spare_that_was_killed_is_not_missed(make_agent: MakeAgent) -> None:
    """A guest can kill what it can see."""
    agent = make_agent(spare=True)
    agent.ask("hello")
    for pid in children_of(agent.pid):
        os.kill(pid, 9)
        assert gone(pid)

    assert agent.run("code", "print('fine')").stdout == b"fine\n"


def test_a_request_too_large_for_the_spare_is_served(make_agent: MakeAgent) -> None:
    """It goes the long way."""
    agent = make_agent(spare=True)
    result = agent.run("code", "x = '" + "a" * 200_000 + "'\nprint(len(x))")

    assert result.stdout == b"200000\n"


def test_an_exec_that_is_abandoned_keeps_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an interpreter that was pinned ahead, nobody asks any more what it drew first."""
    blank: dict[str, Any] = dict.fromkeys(ExecRequest._fields)
    request: Any = SimpleNamespace(**{**blank, "args": (), "env": {}, "ahead": True})
    drew, order = os.pipe()
    os.set_blocking(drew, False)
    spare = Spare(0, (), OrderLog(), None, order, ahead=True)
    parking: Any = SimpleNamespace(take=lambda work, channel: spare)
    work = CodeExec(SimpleNamespace(config={}, started=1, opened=True), request, parking, lambda done: None)  # type: ignore[arg-type]  # enough
    monkeypatch.setattr(work, "_look_after", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work.launch("/")

    work.abandon()

    assert os.read(drew, 1) == b""  # its end: nobody holds the other side
    os.close(drew)
    work.abandon()
    assert work.extra() == {}


def md5(data: bytes) -> bytes:
    """Its hexadecimal form."""
    import hashlib

    return hashlib.md5(data).hexdigest().encode()


def children_of(pid: int) -> list[int]:
    """Processes whose parent it is."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]
