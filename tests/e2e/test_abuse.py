"""Clients that mean no good, or too much good: the server goes on, and nothing is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hotbed import Draining, Sandbox, connect
from hotbed.sdk.addresses import Address
from hotbed.sdk.async_transport import dialled
from tests.e2e.node_process import NodeProcess, node_process
from tests.interop.published import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # each test starts processes

ECHO = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
while data := peer.recv(99):
    peer.sendall(data)
peer.recv(1)
"""
HALVES = (b"", b"GET / HTTP/1.1\r\nx: ", b"POST /v1/rollouts HTTP/1.1\r\ncontent-length: 9\r\n\r\n{")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node over the fake backend."""
    with node_process(tmp_path, max_sandboxes=300, queue_wait_s=250.0) as started:
        yield started


def descriptors(node: NodeProcess) -> int:
    """How many the node has open."""
    return len(os.listdir(f"/proc/{node.pid}/fd"))


def settled(node: NodeProcess, most: int) -> bool:
    """Whether it comes back to so many descriptors."""
    deadline = time.monotonic() + 20
    while descriptors(node) > most:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


async def burst(node: NodeProcess, count: int, request: bytes) -> list[int]:
    """So many requests at once, each on a connection of its own: their statuses."""

    async def one() -> int:
        local = await dialled(Address(unix_path=str(node.socket)), 280)
        local.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=local)
        writer.write(request)
        status = int((await reader.readline()).split()[1])
        writer.close()
        return status

    return await asyncio.gather(*(one() for _ in range(count)))


def post(path: str, body: dict[str, object]) -> bytes:
    """A request's bytes."""
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(data)) + data


def test_a_thousand_at_once_are_all_served(node: NodeProcess) -> None:
    """Rollouts on connections of their own, and not one error."""
    node.call("GET", "/v1/health")
    before = descriptors(node)
    request = post("/v1/rollouts", {"template": "python", "command": "true", "timeout_seconds": 60})

    statuses = asyncio.run(asyncio.wait_for(burst(node, 1000, request), 280))

    assert statuses == [200] * 1000
    assert settled(node, before + 8)


def test_two_hundred_execs_in_one_sandbox(node: NodeProcess) -> None:
    """Nobody waits for anybody, and nobody is refused."""
    name = node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
    request = post(f"/v1/sandboxes/{name}/exec", {"command": "sleep 0.2", "timeout_seconds": 60})

    assert asyncio.run(asyncio.wait_for(burst(node, 200, request), 280)) == [200] * 200


def test_connections_that_say_nothing_harm_nobody(node: NodeProcess) -> None:
    """Half heads, half bodies, and none at all; they are let go when they hang up."""
    node.call("GET", "/v1/health")
    before = descriptors(node)
    held = []
    for number in range(300):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(node.socket))
        client.sendall(HALVES[number % len(HALVES)])
        held.append(client)
    assert node.call("POST", "/v1/rollouts", {"template": "python", "command": "echo ok"})[1]["stdout"] == "ok\n"
    for client in held:
        client.close()

    assert settled(node, before + 8)


@pytest.mark.parametrize(
    "frames",
    [
        b"\x81\x05hello",  # not masked
        b"\xf1\x80\0\0\0\0",  # bits that nobody agreed on
        b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",  # longer than there are bytes
        b"\x88\xfe\xff\xff\0\0\0\0",  # a control frame that is too long
        os.urandom(5000),
    ],
)
def test_frames_that_are_none_end_their_socket_only(node: NodeProcess, frames: bytes) -> None:
    """And the exec behind it."""
    name = node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(node.socket))
        client.sendall(
            f"GET /v1/sandboxes/{name}/process HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            "sec-websocket-key: MDAwMDAwMDAwMDAwMDAwMA==\r\nsec-websocket-version: 13\r\n\r\n".encode()
        )
        assert b" 101 " in client.recv(4096)
        client.sendall(frames)
        if frames[1] != 0xFF:
            while client.recv(4096):
                pass
    deadline = time.monotonic() + 20
    while node.call("GET", "/v1/stats")[1]["node"]["inflight"]:
        assert time.monotonic() < deadline
    assert node.call("POST", f"/v1/sandboxes/{name}/exec", {"command": "echo ok"})[1]["stdout"] == "ok\n"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sandboxes/..%2F..%2Fetc%2Fpasswd",
        "/v1/sandboxes/%00",
        "/v1/sandboxes/" + "a" * 5000,
        "/v1/sandboxes/..;/x/exec",
        "/v1/sandboxes//exec",
        "/v1/sandboxes/%E2%80%AE/jobs/..%2F..",
        "/v1/rollouts/..%2F%00",
        "/v1/../v1/stats",
    ],
)
def test_tricks_in_paths_name_nothing(node: NodeProcess, path: str) -> None:
    """Not found, in our words, whatever they look like."""
    status, answer = node.call("GET", path)

    assert status in (400, 404, 405) and answer["code"] in ("not_found", "invalid_request", "unknown_rollout")


def test_a_drain_waits_for_what_runs_and_for_no_open_tunnel(tmp_path: Path) -> None:
    """A process that is talked to and a job end in their own time; a tunnel works until they have, and no longer."""
    port = free_port()
    with (
        node_process(tmp_path, drain_s=60, port=port, shared=True) as node,
        connect(f"http://127.0.0.1:{port}") as client,
        Sandbox("python", client=client) as sandbox,
        sandbox.process(ECHO) as server,
        sandbox.process(command="read line; echo got $line") as talker,
    ):
        inner = int(next(iter(server))[1])
        job = sandbox.start_job(command="sleep 2; echo job")
        with sandbox.port_forward(inner) as forward, socket.create_connection((forward.host, forward.port), 20) as peer:
            peer.sendall(b"before")
            assert peer.recv(99) == b"before"
            node.process.send_signal(signal.SIGTERM)
            while client.health().status != "draining":
                pass
            with pytest.raises(Draining):
                sandbox.process(command="true")
            # Not by our client, which asks again for half a minute: there may be another node by then.
            with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as plain:
                plain.request("POST", f"/v1/sandboxes/{sandbox.id}/jobs", b'{"command": "true"}')
                assert plain.getresponse().status == 503
            peer.sendall(b"while")
            assert peer.recv(99) == b"while"
            talker.write("it\n")
            assert b"".join(data for _, data in talker) == b"got it\n"
            assert talker.wait().ok
            assert job.wait(timeout_s=30).stdout == "job\n"
            server.close()  # and now nothing runs, though the tunnel is open
            assert node.process.wait(30) == 0


def test_a_drain_lets_an_exec_end_and_starts_none(tmp_path: Path) -> None:
    """Health says draining, new work is refused before it does anything, what runs ends."""
    with node_process(tmp_path, drain_s=20) as node:
        name = node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
        answers: list[tuple[int, object]] = []
        body = {"command": "sleep 1; echo ended"}
        worker = threading.Thread(target=lambda: answers.append(node.call("POST", f"/v1/sandboxes/{name}/exec", body)))
        with closing(node.connect()) as first, closing(node.connect()) as second:
            first.connect()
            second.connect()
            worker.start()
            while not node.call("GET", "/v1/stats")[1]["node"]["inflight"]:
                pass
            node.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 10
            while True:
                first.request("GET", "/v1/health")
                if json.loads(first.getresponse().read())["status"] == "draining":
                    break
                assert time.monotonic() < deadline
            second.request("POST", "/v1/sandboxes", '{"template": "python"}')
            refused = second.getresponse()
            assert (refused.status, json.loads(refused.read())["code"]) == (503, "draining")
            worker.join(20)
        assert node.process.wait(20) == 0

    assert [(status, dict(answer)["stdout"]) for status, answer in answers] == [(200, "ended\n")]  # type: ignore[call-overload]  # JSON
