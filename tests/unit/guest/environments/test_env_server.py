"""One environment over one lane: every way in which env.py can fail is an answer, or the end of the lane."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hotbed.guest
from hotbed.guest.environments import lane, values

SERVER = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from guest.environments import env_server
for path in sys.argv[4:]:
    env_server.preload(path)
env_server.main(socket.socket(fileno=int(sys.argv[2])), {"path": sys.argv[3]})
"""
COUNTER = """
from hotbed.env import serve
count = 0
def reset(seed):
    global count
    count = 0
    return {"task": seed}
def step(action):
    global count
    count += 1
    return {"count": count, "action": action}, 0.5, count == 3, {"note": "n"}
serve(reset=reset, step=step)
"""


class Server:
    """The program in a process of its own, as the agent would run it, with this test at the other end of the lane."""

    def __init__(self, path: Path, *preload: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        guest = Path(hotbed.guest.__file__).parent.parent
        arguments = [str(guest), str(theirs.fileno()), str(path), *preload]
        command = [sys.executable, "-I", "-S", "-c", SERVER, *arguments]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
        theirs.close()
        ours.settimeout(20)
        self.sock, self._inbox, self._id = ours, lane.Inbox(), 0

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request and its answer."""
        self._id += 1
        for packet in lane.packets(values.pack({"id": self._id, **request})):
            self.sock.send(packet)
        answer = self.receive()
        assert answer["id"] == self._id
        return answer

    def receive(self) -> dict[str, Any]:
        """The next header."""
        while True:
            packet = self.sock.recv(lane.PACKET)
            if not packet:
                raise EOFError
            header = self._inbox.take(packet)
            if header is not None:
                return header

    def close(self) -> None:
        """End it."""
        self.sock.close()
        self.process.kill()
        self.process.communicate()


Serving = Callable[..., Server]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """Start servers of an env.py's text."""
    servers: list[Server] = []

    def serve(text: str, *, preloaded: bool = False) -> Server:
        path = tmp_path / "env.py"
        path.write_text(text)
        servers.append(Server(path, *([str(path)] if preloaded else [])))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


@pytest.mark.parametrize("module", ["hotbed.env", "boltzlabs.env"])
@pytest.mark.parametrize("preloaded", [False, True])
def test_an_environment_is_served_under_both_names(serving: Serving, module: str, preloaded: bool) -> None:
    """`from boltzlabs.env import serve` is what the published examples print."""
    server = serving(COUNTER.replace("hotbed.env", module), preloaded=preloaded)

    ready = server.receive()
    task = server.ask(op="reset", seed=11)
    step = server.ask(op="step", action={"code": "x"})

    assert (ready["op"], ready["closes"]) == ("ready", False)
    assert task["task"] == {"task": 11}
    assert step["step"] == [{"count": 1, "action": {"code": "x"}}, 0.5, False, False, {"note": "n"}]
    assert step["us"] >= 0


@pytest.mark.parametrize("preloaded", [False, True])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "without calling serve"),
        ("from hotbed.env import serve\nserve(reset=1, step=2)", "needs a function, not int"),
    ],
)
def test_a_failure_while_loading_is_the_first_and_last_word(
    serving: Serving, text: str, reason: str, preloaded: bool
) -> None:
    """It carries the end of the traceback, for `details`."""
    server = serving(text, preloaded=preloaded)
    word = server.receive()

    assert (word["op"], word["status"]) == ("failed", "error")
    assert reason in word["reason"]
    assert "env_server.py" not in word["reason"]
    with pytest.raises(EOFError):
        server.receive()


@pytest.mark.parametrize("statement", ["raise KeyError('code')", "import sys; sys.exit(1)", "raise KeyboardInterrupt"])
def test_an_exception_in_step_is_an_answer_and_the_server_lives_on(serving: Serving, statement: str) -> None:
    """Only the author's own frames are shown."""
    server = serving(COUNTER.replace("    count += 1\n", f"    count += 1\n    if action == 'bad': {statement}\n"))
    server.receive()
    server.ask(op="reset", seed=0)

    failed = server.ask(op="step", action="bad")
    after = server.ask(op="step", action="good")

    assert failed["status"] == "error"
    assert 'env.py", line' in failed["reason"]
    assert "env_server.py" not in failed["reason"]
    assert after["step"][0]["count"] == 2


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("raise OSError(28, 'No space left on device')", "disk"),
        ("raise BlockingIOError(11, 'fork')", "pids"),
        ("raise MemoryError", "oom"),
    ],
)
def test_a_used_up_limit_is_named_by_its_status(serving: Serving, statement: str, status: str) -> None:
    """The client then takes a fresh worker instead of this one."""
    server = serving(f"from hotbed.env import serve\ndef step(a): {statement}\nserve(lambda seed: 0, step)")
    server.receive()

    assert server.ask(op="step", action=0)["status"] == status


@pytest.mark.parametrize("value", ["object()", "{1}", "float"])
def test_what_cannot_cross_is_explained_not_fatal(serving: Serving, value: str) -> None:
    """An observation is data."""
    server = serving(f"from hotbed.env import serve\nserve(lambda seed: 0, lambda a: ({value}, 0, False, {{}}))")
    server.receive()

    answer = server.ask(op="step", action=0)

    assert answer["status"] == "error"
    assert "observation or info cannot be sent" in answer["reason"]


def test_prints_of_the_author_do_not_reach_the_lane(serving: Serving) -> None:
    """stdout is for the author's log."""
    text = COUNTER.replace("    count += 1\n", "    count += 1\n    print('hello', flush=True)\n")
    server = serving(text)
    server.receive()
    server.ask(op="reset", seed=0)

    assert server.ask(op="step", action=1)["step"][0]["count"] == 1


def test_a_forked_child_that_returns_into_the_server_answers_nothing(serving: Serving) -> None:
    """Else two processes would speak on one lane."""
    text = COUNTER.replace("    count += 1\n", "    count += 1\n    import os\n    if os.fork() == 0: count = 99\n")
    server = serving(text)
    server.receive()
    server.ask(op="reset", seed=0)

    assert [server.ask(op="step", action=1)["step"][0]["count"] for _ in range(3)] == [1, 2, 3]


def test_between_requests_it_waits_on_descriptor_three_with_one_thread(serving: Serving) -> None:
    """The state in which it can be frozen and copied from outside."""
    server = serving(COUNTER)
    server.receive()
    server.ask(op="reset", seed=0)
    proc = Path("/proc") / str(server.process.pid)
    for _ in range(1000):
        if (proc / "syscall").read_text().split()[:2] == ["0", "0x3"]:
            break
        os.sched_yield()

    assert (proc / "syscall").read_text().split()[:2] == ["0", "0x3"]
    assert len(list((proc / "task").iterdir())) == 1
    assert sorted(int(fd.name) for fd in (proc / "fd").iterdir()) == [0, 1, 2, 3]


def test_close_calls_the_authors_close_and_ends(serving: Serving) -> None:
    """And `ready` has told that there is one to wait for."""
    server = serving(COUNTER.replace("step=step)", "step=step, close=lambda: print('bye'))"))

    assert server.receive()["closes"] is True
    assert "status" not in server.ask(op="close")
    assert server.process.wait(20) == 0


def test_the_end_of_the_lane_is_the_end_of_the_server(serving: Serving) -> None:
    """A client that is gone leaves nothing running."""
    server = serving(COUNTER)
    server.receive()
    server.sock.close()

    assert server.process.wait(20) == 0


def test_a_killed_server_is_seen_as_the_end_of_the_lane(serving: Serving) -> None:
    """Not as a hang."""
    server = serving(COUNTER)
    server.receive()
    server.process.send_signal(signal.SIGKILL)

    with pytest.raises((EOFError, ConnectionError)):  # gone before the question, or after it
        server.ask(op="reset", seed=0)


@pytest.mark.slow
def test_sixteen_mebibytes_go_there_and_back(serving: Serving) -> None:
    """Large actions and observations are cut into packets."""
    server = serving(COUNTER)
    server.receive()
    server.ask(op="reset", seed=0)
    blob = os.urandom(16 << 20)

    assert server.ask(op="step", action=blob)["step"][0]["action"] == blob
