"""A node as a process: start, serve, drain, leave nothing. Over the fake backend; tests/e2e does the rest."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.node_process import NodeProcess, node_process
from tests.interop.published import free_port

pytestmark = pytest.mark.slow  # each test starts a process


def wait_for(condition: str, path: Path) -> None:
    """Wait until a word is in a file."""
    deadline = time.monotonic() + 10
    while condition not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.01)


def hold_lease(node: NodeProcess) -> socket.socket:
    """A connection that holds a lease."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(node.socket))
    connection.sendall(b"GET /v1/leases/hold HTTP/1.1\r\nhost: node\r\n\r\n")
    while b"lease_id" not in connection.recv(4096):
        pass
    return connection


def test_it_serves_and_leaves_nothing_on_sigterm(tmp_path: Path) -> None:
    """No socket, and an exit status of 0."""
    with node_process(tmp_path) as node:
        assert node.word["ready"]
        status, answer = node.call("POST", "/v1/rollouts", {"template": "python", "code": "print(1)"})
        assert (status, answer["stdout"], answer["isolation"]) == (200, "1\n", "fake")
        assert node.call("GET", "/v1/health")[1]["status"] == "ok"

        assert node.stop() == 0

        assert not node.socket.exists()


def test_one_connection_carries_many_requests(tmp_path: Path) -> None:
    """Errors do not cost the connection."""
    with node_process(tmp_path) as node:
        connection = node.connect()
        for body, status in ((b"{", 400), (b'{"template":"nope","code":""}', 404), (b"[]", 400)) * 3:
            connection.request("POST", "/v1/rollouts", body)
            response = connection.getresponse()
            response.read()
            assert response.status == status
        connection.close()


def test_a_drain_lets_a_request_end_and_refuses_new_ones(tmp_path: Path) -> None:
    """The answer that was under way arrives."""
    with node_process(tmp_path) as node, closing(node.connect()) as connection, closing(node.connect()) as late:
        late.connect()
        connection.request("POST", "/v1/rollouts", '{"template":"python","command":"sleep 0.5; echo done"}')
        while node.call("GET", "/v1/stats")[1]["node"]["inflight"] == 0:
            time.sleep(0.01)
        node.process.send_signal(signal.SIGTERM)
        wait_for("event=draining", node.log)
        late.request("POST", "/v1/rollouts", '{"template":"python","command":"true"}')
        assert json.loads(late.getresponse().read())["code"] == "draining"
        assert json.loads(connection.getresponse().read())["stdout"] == "done\n"
        assert node.process.wait(20) == 0


def test_a_server_that_drains_says_so_to_who_comes_now_by_its_socket_too(tmp_path: Path) -> None:
    """The published daemon client asks by the socket, with a connection for each request."""
    with node_process(tmp_path, shared=True, port=free_port()) as node, closing(node.connect()) as connection:
        connection.request("POST", "/v1/rollouts", '{"template":"python","command":"sleep 1; echo done"}')
        while node.call("GET", "/v1/stats")[1]["node"]["inflight"] == 0:
            time.sleep(0.01)
        node.process.send_signal(signal.SIGTERM)
        wait_for("event=draining", node.log)
        assert node.call("GET", "/v1/health")[1]["status"] == "draining"
        assert node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["code"] == "draining"
        assert json.loads(connection.getresponse().read())["stdout"] == "done\n"
        assert node.process.wait(20) == 0
        assert not node.socket.exists()


def test_a_second_signal_cuts_the_drain_short(tmp_path: Path) -> None:
    """Somebody pressed Ctrl-C twice."""
    with node_process(tmp_path) as node, closing(node.connect()) as connection:
        connection.request("POST", "/v1/rollouts", '{"template":"python","command":"sleep 60"}')
        while node.call("GET", "/v1/stats")[1]["node"]["inflight"] == 0:
            time.sleep(0.01)
        node.process.send_signal(signal.SIGTERM)
        wait_for("event=draining", node.log)
        assert node.stop(signal.SIGINT) == 0


def test_a_second_node_on_one_socket_says_who_is_first(tmp_path: Path) -> None:
    """Through the pipe, to whoever started it."""
    with node_process(tmp_path) as node, node_process(tmp_path) as second:
        assert (second.word["ready"], second.word["code"]) == (False, "node_unavailable")
        assert str(node.pid) in second.word["message"]
        assert second.process.wait(20) == 3
        assert node.call("GET", "/v1/health")[0] == 200


def test_an_embedded_node_ends_after_its_last_lease(tmp_path: Path) -> None:
    """What was started is only its first process, so that no client has a child to wait for."""
    node = NodeProcess(tmp_path, embedded=True, linger_s=0.1)
    assert node.process.wait(20) == 0
    assert node.pid != node.process.pid
    held = [hold_lease(node) for _ in range(2)]
    held[0].close()
    time.sleep(0.3)
    assert node.call("GET", "/v1/health")[0] == 200
    held[1].close()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{node.pid}/exe"):
        assert time.monotonic() < deadline, "it should have ended"
        time.sleep(0.02)
    assert not node.socket.exists()
