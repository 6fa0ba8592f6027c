"""From the first hello to the last frame, on the short way and off it."""

from __future__ import annotations

import os
import platform
import struct
import time
from pathlib import Path

import pytest

from hotbed.guest import frames
from tests.unit.guest.agent_process import AgentProcess


def test_a_bare_hello_costs_an_idle_sandbox_next_to_nothing(agent: AgentProcess) -> None:
    """It is answered before the agent has made anything of its own; what follows is served as ever."""
    for _ in range(2):
        agent.connection.send({"op": "hello"})
        assert agent.receive()[0]["python"] == platform.python_version()
    descriptors = len(os.listdir(f"/proc/{agent.pid}/fd"))

    assert descriptors == 4
    assert agent.run("code", "print('served')").stdout == b"served\n"


def test_bytes_that_are_no_frame_are_answered_and_end_the_agent(agent: AgentProcess) -> None:
    """There is no next frame to be found in a stream out of step."""
    agent.connection.sock.sendall(struct.pack("!II", 4, 0) + b"nope")
    header, _, _ = agent.receive()

    assert (header["op"], header["code"]) == ("error", "bad_request")
    with pytest.raises(frames.Closed):
        agent.receive()


@pytest.mark.parametrize("kind", ["code", "command"])
def test_a_request_that_comes_in_pieces_is_served(agent: AgentProcess, kind: str) -> None:
    """Byte by byte: the first piece leads off the short way, and the rest is waited for."""
    program = b"print(1)" if kind == "code" else b"echo 1"
    header = {"op": "exec", "id": "x", "kind": kind, "program": len(program), "timeout_s": 20.0}
    for byte in frames.pack(header, program):
        agent.connection.sock.sendall(bytes([byte]))

    assert agent.result().stdout == b"1\n"


def test_a_program_on_the_short_way_can_be_asked_about_and_cancelled(agent: AgentProcess) -> None:
    """Any frame leads off it, with what was printed so far."""
    name = agent.start_exec("code", "import time; print('so far', flush=True); time.sleep(60)")
    while (peeked := agent.ask("peek", id=name)).get("stdout") != 7:
        time.sleep(0.01)
    agent.send("cancel", id=name)
    result = agent.result()

    assert peeked["op"] == "peeked"
    assert (result.status, result.stdout) == ("signal", b"so far\n")
    assert agent.run("code", "print('on')").stdout == b"on\n"


def test_files_in_between_do_not_lead_off_it(agent: AgentProcess, tmp_path: Path) -> None:
    """Nothing lives in the sandbox then."""
    assert agent.run("code", "print(1)").stdout == b"1\n"
    wait_reaped(agent)
    assert agent.ask("stat", path=str(tmp_path))["op"] != "error"
    assert agent.run("code", "print(2)").stdout == b"2\n"
    assert not [fd for fd in os.listdir(f"/proc/{agent.pid}/fd") if "eventpoll" in target(agent.pid, fd)]


def wait_reaped(agent: AgentProcess) -> None:
    """Until it has no child."""
    while Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text():
        time.sleep(0.001)


def target(pid: int, fd: str) -> str:
    """What a descriptor is of."""
    return os.readlink(f"/proc/{pid}/fd/{fd}")
