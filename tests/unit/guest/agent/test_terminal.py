"""An exec on a terminal of its own."""

from __future__ import annotations

import os
from typing import Any

import pytest

from hotbed.guest.agent.terminal import Terminal, size_of
from tests.unit.guest.agent_process import AgentProcess

WINDOW = 1 << 18


def on_terminal(agent: AgentProcess, command: str, *typed: bytes, **fields: Any) -> tuple[str, str]:
    """Run a command on a terminal, type, and wait for its end: its status and what was shown."""
    fields = {"terminal": [24, 80], "stream": True, "window": WINDOW, **fields}
    name = agent.start_exec("command", command, **fields)
    for piece in typed:
        agent.send("input", piece, id=name)
    shown = b""
    while True:
        header, body, _ = agent.receive()
        if header["op"] == "output":
            shown += body
        elif header["op"] == "result":
            return header["status"], shown.decode()


def test_the_program_has_it_as_its_controlling_terminal(agent: AgentProcess) -> None:
    """All three descriptors, and /dev/tty."""
    status, shown = on_terminal(agent, "test -t 0 && test -t 1 && test -t 2 && echo yes >/dev/tty; echo $TERM")

    assert (status, shown) == ("ok", "yes\r\nxterm-256color\r\n")


def test_it_has_the_size_that_was_asked_for(agent: AgentProcess) -> None:
    """Rows first, as everywhere."""
    assert on_terminal(agent, "stty size", terminal=[31, 97]) == ("ok", "31 97\r\n")


def test_a_new_size_is_seen_and_told(agent: AgentProcess) -> None:
    """By SIGWINCH, while it runs."""
    program = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"
    name = agent.start_exec("command", program, terminal=[24, 80], stream=True, window=WINDOW)
    shown = b""
    while b"ready" not in shown:
        shown += agent.receive()[1]
    agent.send("resize", id=name, size=[50, 132])
    while (frame := agent.receive())[0]["op"] != "result":
        shown += frame[1]

    assert shown == b"ready\r\n50 132\r\n"


def test_what_is_typed_arrives_and_control_c_interrupts(agent: AgentProcess) -> None:
    """The line discipline makes the signal, as on any terminal."""
    name = agent.start_exec(
        "command", "read x; echo got $x; exec sleep 20", terminal=[24, 80], stream=True, window=WINDOW
    )
    agent.send("input", b"hi\n", id=name)
    shown = b""
    while b"got hi" not in shown:
        shown += agent.receive()[1]
    agent.send("input", b"\3", id=name)
    while (frame := agent.receive())[0]["op"] != "result":
        shown += frame[1]

    assert (frame[0]["status"], frame[0]["signal"], shown) == ("signal", 2, b"hi\r\ngot hi\r\n^C")


def test_the_end_of_input_is_an_end_of_file(agent: AgentProcess) -> None:
    """A terminal cannot be closed at one end only, so its own mark is typed."""
    assert on_terminal(agent, "cat; echo done", b"abc\n", b"") == ("ok", "abc\r\nabc\r\ndone\r\n")


def test_what_is_left_on_it_is_hung_up(agent: AgentProcess) -> None:
    """As by closing the window."""
    on_terminal(agent, "(trap '' TERM; exec sleep 60) & echo $! > pid")
    ended = agent.run(
        "command", "for i in $(seq 200); do kill -0 $(cat pid) 2>/dev/null || exit 0; sleep 0.01; done; exit 1"
    )

    assert ended.status == "ok"


def test_its_deadline_holds(agent: AgentProcess) -> None:
    """Whatever the program does with it."""
    status, _ = on_terminal(agent, "trap '' HUP INT; cat", timeout_s=0.2)

    assert status == "timeout"


def test_nothing_stays_open(agent: AgentProcess) -> None:
    """Neither our end nor what feeds it."""
    on_terminal(agent, "true")
    before = len(os.listdir(f"/proc/{agent.pid}/fd"))
    for _ in range(5):
        on_terminal(agent, "true", b"x")

    assert len(os.listdir(f"/proc/{agent.pid}/fd")) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "code", "terminal": [24, 80]},
        {"kind": "commands", "argv": [["true"], ["true"]], "terminal": [24, 80]},
        {"kind": "commands", "argv": [["true"]], "terminal": [0, 80]},
        {"kind": "commands", "argv": [["true"]], "terminal": "large"},
    ],
)
def test_what_cannot_have_one_is_refused(agent: AgentProcess, fields: dict[str, Any]) -> None:
    """The warm interpreter's streams were made for pipes, and a second command would find it hung up."""
    assert agent.ask("exec", **fields)["code"] == "bad_request"


@pytest.mark.parametrize("value", [None, [1], [1, 2, 3], [1, 70000], [True, 2], ["1", "2"]])
def test_a_size_is_two_small_numbers(value: object) -> None:
    """The kernel keeps sixteen bits of each."""
    with pytest.raises(ValueError, match="rows"):
        size_of(value)


def test_making_one_leaves_it_unlocked() -> None:
    """So that it can be opened by its path."""
    terminal = Terminal(10, 20)
    other = os.open(terminal.path, os.O_RDWR | os.O_NOCTTY)

    assert os.get_terminal_size(other) == (20, 10)
    os.close(other)
    os.close(terminal.fd)
