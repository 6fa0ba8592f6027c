"""A real node on the fake backend, and scripted nodes that misbehave in the ways real ones cannot be made to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hotbed.sdk.client import Client
from hotbed.sdk.connect import connect
from hotbed.sdk.embedded import NodePlace, start_node
from hotbed.sdk.http import chunk

Turn = Callable[[socket.socket], None]
LEASE = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b'{"lease_id": "lease1", "ttl_s": 15.0}\n')


@pytest.fixture(scope="session")
def node_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of a node that serves until the tests are over."""
    place = NodePlace(directory=str(tmp_path_factory.mktemp("sdk") / "run"))
    place.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOTBED_BACKEND", "fake")
        start_node(place)
    with connect(unix_socket=place.socket):
        yield place.socket


@pytest.fixture
def client(node_socket: str) -> Iterator[Client]:
    """A client of that node."""
    with connect(unix_socket=node_socket) as made:
        yield made


class ScriptedNode:
    """Listens on a Unix socket and plays one turn for each connection it accepts, in order."""

    def __init__(self, path: Path, turns: list[Turn]) -> None:
        self.path = str(path)
        self.requests: list[bytes] = []
        self._turns = turns
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen()
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _play(self) -> None:
        for turn in self._turns:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._held.append(connection)
            with suppress(OSError):  # the client, or the end of the test, has hung up in the middle of a turn
                turn(connection)

    def close(self) -> None:
        """Stop listening and hang up on everybody."""
        self._listener.close()
        for connection in self._held:
            connection.close()


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Callable[..., ScriptedNode]]:
    """Makes scripted nodes."""
    made: list[ScriptedNode] = []

    def make(*turns: Turn) -> ScriptedNode:
        node = ScriptedNode(tmp_path / f"{len(made)}.sock", list(turns))
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()


def read_request(connection: socket.socket) -> bytes:
    """One whole request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """An HTTP answer."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def say(*answers: bytes) -> Turn:
    """A turn that reads a request and gives an answer, as often as there are answers."""

    def turn(connection: socket.socket) -> None:
        for data in answers:
            read_request(connection)
            connection.sendall(data)

    return turn


def grant(connection: socket.socket) -> None:
    """A turn that grants a lease."""
    read_request(connection)
    connection.sendall(LEASE)
