"""Our client over TLS: the calls, a process that is talked to, and ports, both ways at once."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hotbed import Client, Sandbox, connect
from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.store import KeyStore
from hotbed.sdk.websocket import BINARY, TEXT, SocketReader, frame, upgrade_request
from hotbed.wire.tunnels import EOF
from tests.e2e.node_process import node_process
from tests.interop.published import free_port
from tests.unit.cli.commands.test_serve import certificate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # each test starts processes

#: Says that it is there, and takes nothing.
GREETING = """
import socket
server = socket.create_server(("127.0.0.1", {port}))
print(end="up\\n", flush=True)
peers = []
while True:
    peers.append(server.accept()[0])
    peers[-1].sendall(b"y")
"""
#: Sends everything back once it has all of it, which is how it knows that the other side has ended.
REVERSE = """
import socket
server = socket.create_server(("127.0.0.1", {port}))
print(end="up\\n", flush=True)  # one write, however it is buffered
while True:
    peer, _ = server.accept()
    data = b""
    while piece := peer.recv(1 << 16):
        data += piece
    peer.sendall(data[::-1])
    peer.close()
"""
BYTES = bytes(range(256)) * 4096  # a mebibyte


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A tenant's, of a server with a certificate of its own authority."""
    cert, key_file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", cert)
    key, secret = Key(tenant="acme", tier="pro", scopes=frozenset(("run", "read"))), new_secret()
    store = KeyStore(tmp_path / "home")
    store.add(key, secret)
    store.close()
    port = free_port()
    settings = {"port": port, "shared": True, "home": str(tmp_path / "home"), "tls_cert": cert, "tls_key": key_file}
    with (
        node_process(tmp_path, **settings),
        connect(f"https://localhost:{port}", api_key=key_text(key, secret, collimate=False)) as made,
    ):
        yield made


def test_a_port_is_forwarded_both_ways_and_each_way_ends_for_itself(client: Client) -> None:
    """The answer comes after the question's end: a tunnel that took one end for both would lose it."""
    port = free_port()
    with (
        Sandbox("python", client=client) as sandbox,
        sandbox.process(REVERSE.format(port=port)) as server,
        sandbox.port_forward(port) as forward,
    ):
        assert next(iter(server)) == (1, b"up\n")
        for _ in range(2):
            with socket.create_connection((forward.host, forward.port), 20) as peer:
                peer.sendall(BYTES)
                peer.shutdown(socket.SHUT_WR)
                assert received(peer) == BYTES[::-1]


def test_a_forward_that_is_closed_leaves_no_connection_open(client: Client) -> None:
    """To the node: a TLS connection that was left to be closed in form is a warning when it is collected."""
    port = free_port()
    with Sandbox("python", client=client) as sandbox, sandbox.process(GREETING.format(port=port)) as server:
        assert next(iter(server)) == (1, b"up\n")
        for _ in range(5):  # whether the node is fast enough is a matter of luck
            with (
                sandbox.port_forward(port) as forward,
                socket.create_connection((forward.host, forward.port), 20) as peer,
            ):
                assert peer.recv(1) == b"y"  # the connection is there
                peer.sendall(BYTES[: 1 << 16])  # and nobody takes what comes over it
                forward.close()
    gc.collect()


def received(peer: socket.socket) -> bytes:
    """All of it."""
    pieces = []
    while piece := peer.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def test_an_address_opens_its_port_to_whoever_has_it(client: Client) -> None:
    """Without a key, with a WebSocket of their own, while both sides write."""
    port = free_port()
    with Sandbox("python", client=client) as sandbox, sandbox.process(REVERSE.format(port=port)) as server:
        assert next(iter(server)) == (1, b"up\n")
        url = sandbox.connect_url(port)
        assert url.startswith("wss://localhost:")

        assert asyncio.run(asked(url, BYTES)) == BYTES[::-1]


async def asked(url: str, data: bytes) -> bytes:
    """What a port says to some bytes and their end."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=ssl.create_default_context())
    writer.write(upgrade_request(f"{parts.path}?{parts.query}&half_close=1", b"Host: localhost\r\n"))
    heard, answer = SocketReader(), b""
    while not heard.is_open:  # nothing may be sent on a WebSocket before that
        heard.feed(await reader.read(1 << 16))
    for start in range(0, len(data), 1 << 16):
        writer.write(frame(BINARY, data[start : start + (1 << 16)]))
    writer.write(frame(TEXT, EOF.encode()))
    while True:
        message = heard.message()
        if message is None:
            heard.feed(await reader.read(1 << 16))
        elif message[0] == BINARY:
            answer += message[1]
        else:
            assert message == (TEXT, EOF.encode())
            writer.close()
            await writer.wait_closed()  # a TLS connection is not over at once
            return answer


def test_a_client_keeps_its_lease_from_call_to_call(client: Client) -> None:
    """What it made before is still there when it makes more."""
    with Sandbox("python", client=client) as first, Sandbox("python", client=client) as second:
        assert first.exec(command="echo 1").ok and second.exec(command="echo 2").ok
        assert len(client.sandboxes()) == 2


def test_calls_and_processes_are_as_on_one_machine(client: Client) -> None:
    """A thread reads while another writes, over one TLS object."""
    with Sandbox("python", client=client) as sandbox:
        assert sandbox.exec(command="echo plain").stdout == "plain\n"
        sandbox.upload_bytes("/tmp/data", BYTES)
        assert sandbox.download("/tmp/data") == BYTES
        with sandbox.process(command="while read line; do echo $line; done") as echo:
            for number in range(50):
                echo.write(f"{number}\n")
            echo.end_input()
            heard = b"".join(data for _, data in echo)
            assert heard.split() == [b"%d" % number for number in range(50)]
    assert client.sandboxes() == ()
