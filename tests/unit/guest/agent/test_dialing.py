"""The agent connects to what listens beside it, and gives the connection away."""

from __future__ import annotations

import os
import socket

import pytest

from tests.unit.guest.agent_process import AgentProcess


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listener_is_reached_on_either_loopback(agent: AgentProcess, family: socket.AddressFamily, host: str) -> None:
    """Servers choose one or the other."""
    with socket.create_server((host, 0), family=family) as listener:
        agent.send("dial", port=listener.getsockname()[1])
        header, _, fds = agent.receive()
        taken, _ = listener.accept()
        with taken, socket.socket(fileno=fds[0]) as ours:
            ours.sendall(b"hello")
            assert (header["op"], taken.recv(10)) == ("dialed", b"hello")


def test_a_port_without_a_listener_is_refused_at_once(agent: AgentProcess) -> None:
    """Both loopbacks have said so."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]

    assert agent.ask("dial", port=port)["code"] == "refused"


def test_a_listener_that_takes_nobody_holds_up_nobody(agent: AgentProcess) -> None:
    """Its queue is full: the connection waits, and the agent does not."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
            waiting.append(sock)
        agent.send("dial", id="stuck", port=listener.getsockname()[1])

        assert agent.run("command", "echo served").stdout == b"served\n"
        for sock in waiting:
            sock.close()


@pytest.mark.parametrize("port", [0, -1, 65536, "80", None, True])
def test_what_is_no_port_is_refused(agent: AgentProcess, port: object) -> None:
    """It is the request that fails."""
    assert agent.ask("dial", port=port)["code"] == "bad_request"


def test_the_agent_keeps_nothing_of_it(agent: AgentProcess) -> None:
    """The connection is the node's alone."""
    agent.run("command", "true")
    before = len(os.listdir(f"/proc/{agent.pid}/fd"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(3):
            agent.send("dial", port=listener.getsockname()[1])
            for fd in agent.receive()[2]:
                os.close(fd)
    agent.ask("hello")

    assert len(os.listdir(f"/proc/{agent.pid}/fd")) == before
