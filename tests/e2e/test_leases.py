"""What clients make over TCP, and how long it lives when connections break, clients go, and time runs out."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hotbed import Sandbox, SandboxGone, connect
from tests.e2e.node_process import NodeProcess, node_process
from tests.interop.published import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # each test starts processes


class Relay:
    """A proxy that can drop every connection at once, as one does that is restarted."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._to = port
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Drop them."""
        ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Drop them, and take no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += (near, far)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()


@pytest.fixture
def port() -> int:
    """Of the server."""
    return free_port()


@contextlib.contextmanager
def server(directory: Path, port: int, **settings: object) -> Iterator[NodeProcess]:
    """One that others use."""
    with node_process(directory, port=port, shared=True, home=str(directory / "home"), **settings) as node:
        yield node


def until(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def living(node: NodeProcess) -> int:
    """How many sandboxes there are."""
    return len(node.call("GET", "/v1/sandboxes")[1]["sandboxes"])


def test_a_broken_connection_is_outlived_and_a_closed_client_is_not(tmp_path: Path, port: int) -> None:
    """A proxy restarts: the next call, of whatever kind, takes the lease up again. Closing says that it is over."""
    with server(tmp_path, port, lease_ttl_s=60) as node, contextlib.closing(Relay(port)) as relay:
        client = connect(relay.url)
        first = Sandbox("python", client=client)
        first.start()
        for _ in range(2):
            relay.cut()
            assert first.exec(command="echo still here").stdout == "still here\n"
            with Sandbox("python", client=client) as second:
                assert second.exec(command="true").ok and living(node) == 2
        client.close()
        until(lambda: living(node) == 0)


def test_a_client_that_does_not_come_back_is_waited_for_once(tmp_path: Path, port: int) -> None:
    """For the lease's time, then what it made ends; its lease cannot be taken up any more."""
    with server(tmp_path, port, lease_ttl_s=1) as node, contextlib.closing(Relay(port)) as relay:
        with connect(relay.url) as client:
            sandbox = Sandbox("python", client=client)
            sandbox.start()
            relay.cut()
            until(lambda: living(node) == 0)
            with pytest.raises(SandboxGone):
                sandbox.exec(command="true")
            with Sandbox("python", client=client) as another:
                assert another.exec(command="true").ok


def test_time_to_live_and_idle_time_run_out_over_http(tmp_path: Path, port: int) -> None:
    """Each ends its own sandbox, which then is gone and not unknown; use puts off the one and not the other."""
    with server(tmp_path, port) as node, connect(f"http://127.0.0.1:{port}") as client:
        kept = Sandbox("python", client=client, idle_ttl_seconds=60)
        short = Sandbox("python", client=client, ttl_seconds=0.5)
        idle = Sandbox("python", client=client, idle_ttl_seconds=0.5)
        for sandbox in (kept, short, idle):
            sandbox.start()
        assert idle.exec(command="sleep 1; echo busy").stdout == "busy\n"
        until(lambda: living(node) == 1)
        for sandbox, why in ((short, "ttl_s ran out"), (idle, "idle")):
            with pytest.raises(SandboxGone, match=why):
                sandbox.exec(command="true")
        assert kept.exec(command="true").ok
