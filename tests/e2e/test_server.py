"""The server from outside: real sockets, real processes, clients that die."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.node_process import NodeProcess, node_process

pytestmark = pytest.mark.slow  # each test starts processes

MIB = 1 << 20
HOLDER = """
import json, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"GET /v1/leases/hold HTTP/1.1\\r\\nhost: node\\r\\n\\r\\n")
data = b""
while b"}" not in data: data += s.recv(4096)
print(json.loads(data[data.index(b"{"): data.index(b"}") + 1])["lease_id"], flush=True)
time.sleep(60)
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node over the fake backend."""
    with node_process(tmp_path) as started:
        yield started


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that takes a moment."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in 10 s"
        time.sleep(0.01)


def counts(node: NodeProcess) -> dict[str, int]:
    """What the node holds."""
    stats = node.call("GET", "/v1/stats")[1]
    return {name: stats["node"][name] for name in ("leases", "sessions", "running", "inflight", "background")}


def peak_mib(pid: int) -> int:
    """The most memory a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def test_a_service_manager_hears_when_the_node_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a unit's `Type=notify` waits for, without a manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with node_process(tmp_path) as node:
            assert manager.recv(100) == b"READY=1"
            assert node.call("GET", "/v1/health")[0] == 200


def test_a_large_file_goes_both_ways_in_flat_memory(node: NodeProcess, tmp_path: Path) -> None:
    """300 MiB of sandbox file must not be 300 MiB of node."""
    before = peak_mib(node.pid)
    name = node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
    url = f"/v1/sandboxes/{name}/files?path=/work/big"
    block = os.urandom(MIB)
    with closing(node.connect()) as connection:
        connection.request("PUT", url, (block for _ in range(300)), encode_chunked=True)
        assert json.loads(connection.getresponse().read())["size"] == 300 * MIB
        connection.request("GET", url)
        response = connection.getresponse()
        for _ in range(300):
            assert response.read(MIB) == block
        assert response.read() == b""

    assert peak_mib(node.pid) - before < 40


def test_a_killed_client_leaves_nothing(node: NodeProcess) -> None:
    """Neither its sandbox nor the rollout that would run for a minute."""
    client = subprocess.Popen([sys.executable, "-c", HOLDER, str(node.socket)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    with client.stdout as out, closing(node.connect()) as connection:
        lease = out.readline().strip()
        made = node.call("POST", "/v1/sandboxes", {"template": "python"}, **{"X-Hotbed-Lease": lease})[1]
        body = '{"template":"python","command":"sleep 60"}'
        connection.request("POST", "/v1/rollouts", body, {"X-Hotbed-Lease": lease})
        wait_until(lambda: counts(node)["running"] == 2)

        client.send_signal(signal.SIGKILL)
        client.wait(10)

        assert connection.getresponse().status == 410
        wait_until(lambda: not any(counts(node).values()))
        assert node.call("GET", f"/v1/sandboxes/{made['id']}")[0] == 410


def test_hanging_up_ends_a_streamed_exec(node: NodeProcess) -> None:
    """Also in a sandbox that is kept."""
    name = node.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
    with closing(node.connect()) as connection:
        connection.request("POST", f"/v1/sandboxes/{name}/exec", '{"command":"echo begun; sleep 60","stream":true}')
        assert b"begun" in connection.getresponse().readline()
        assert counts(node)["inflight"] == 1
    wait_until(lambda: counts(node)["inflight"] == 0)
    assert node.call("POST", f"/v1/sandboxes/{name}/exec", {"command": "echo alive"})[1]["stdout"] == "alive\n"


def test_a_slow_reader_slows_the_program_and_fills_no_memory(node: NodeProcess) -> None:
    """Output waits in the sandbox."""
    before = peak_mib(node.pid)
    body = '{"template":"python","command":"yes | head -c 100000000","stream":true,"output_bytes":1000}'
    with closing(node.connect()) as connection:
        connection.request("POST", "/v1/rollouts", body)
        response = connection.getresponse()
        time.sleep(0.5)
        assert peak_mib(node.pid) - before < 30
        lines = [json.loads(line) for line in response]
    assert lines[-1]["result"]["stdout_total"] == 100_000_000
    assert sum(len(line["data"]) for line in lines[:-1]) == 100_000_000


def test_a_killed_node_is_replaced_and_its_sandboxes_are_gone(tmp_path: Path) -> None:
    """The socket it left is in nobody's way."""
    with node_process(tmp_path) as first:
        name = first.call("POST", "/v1/sandboxes", {"template": "python"})[1]["id"]
        first.stop(signal.SIGKILL)
    with node_process(tmp_path) as second:
        status, answer = second.call("GET", f"/v1/sandboxes/{name}")
        assert (status, answer["code"]) == (410, "session_gone")


def test_many_clients_at_once_are_all_served(node: NodeProcess) -> None:
    """More connections than a default backlog, before any is accepted."""
    connections = [node.connect() for _ in range(300)]
    for connection in connections:
        connection.request("GET", "/v1/health")
    for connection in connections:
        with closing(connection):
            assert connection.getresponse().read()


def test_it_also_listens_on_tcp(tmp_path: Path) -> None:
    """When asked, and on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with node_process(tmp_path, port=port) as node:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request("POST", "/v1/rollouts", '{"template":"python","command":"echo tcp"}')
            assert json.loads(connection.getresponse().read())["stdout"] == "tcp\n"
        assert node.call("GET", "/v1/health")[0] == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01garbage\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nhost: x\r\ncontent-length: no\r\n\r\n",
        b"GET\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_harms_nobody(node: NodeProcess, request_bytes: bytes) -> None:
    """The next client is served."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(node.socket))
        client.sendall(request_bytes)
        assert client.recv(4096).startswith(b"HTTP/1.1 400")
    assert node.call("GET", "/v1/health")[0] == 200
