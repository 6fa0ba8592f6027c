"""A small Internet for tests: a name server, web servers with and without TLS, a server that speaks first.

It runs in a network namespace of its own in which every address is local, so one server answers for every host there
is. The zone is a JSON file, read for each question, so that a test can change where a name leads; a name with several
answers gives them in turn, which is what DNS rebinding is. What arrives is written down: tests say that nothing did.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

CHUNK = b"x" * (1 << 20)


class Server(ThreadingHTTPServer):
    """For both families, with a queue that a burst fits in."""

    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 1024

    def server_bind(self) -> None:
        """Both families on one socket."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "internet", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are no news."""


class Handler(BaseHTTPRequestHandler):
    """Says what it was asked; /bytes/N gives N bytes, /to/URL leads elsewhere, /count/NAME counts."""

    protocol_version = "HTTP/1.1"
    diary: Any = None
    counts: Counter[str] = Counter()

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        local = str(ip_address(self.connection.getsockname()[0]))
        told = {"host": self.headers.get("host", ""), "path": self.path, "method": self.command, "at": local}
        write_down({**told, "kind": "http", "headers": {k.lower(): v for k, v in self.headers.items()}})
        if self.path.startswith("/bytes/"):
            self._stream(int(self.path.split("/")[2]))
        elif self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("location", self.path[4:])
            self.send_header("content-length", "0")
            self.end_headers()
        elif self.path.startswith("/drip"):
            self._drip()
        else:
            self.counts[self.path] += 1
            shown = {"body": body.decode("latin-1"), "count": self.counts[self.path], "headers": dict(self.headers)}
            self._answer({**told, **shown})

    def _answer(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, size: int) -> None:
        self.send_response(200)
        self.send_header("content-length", str(size))
        self.end_headers()
        while size > 0:
            self.wfile.write(CHUNK[: min(size, len(CHUNK))])
            size -= len(CHUNK)

    def _drip(self) -> None:
        """A piece every tenth of a second, without end."""
        self.send_response(200)
        self.send_header("content-length", str(1 << 30))
        self.end_headers()
        while True:
            self.wfile.write(b"drip")
            time.sleep(0.1)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = _serve

    def log_message(self, *_: object) -> None:
        """The diary has it."""


class Greeter:
    """A server that speaks first, as SSH does."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)

    def serve_forever(self) -> None:
        """Greet and echo one line."""
        while True:
            sock, _ = self._sock.accept()
            threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with sock:
            write_down({"kind": "greeted", "at": str(ip_address(sock.getsockname()[0]))})
            sock.sendall(b"SSH-2.0-internet\r\n")
            sock.sendall(sock.recv(100))


class Crowd:
    """A web server for very many connections: one thread, one answer, no diary."""

    _ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"

    def __init__(self, port: int) -> None:
        self._sock = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)

    def serve_forever(self) -> None:
        """Answer."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._one, sock=self._sock, backlog=1024) as server:
            await server.serve_forever()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._ANSWER)
        except (OSError, EOFError):
            pass  # it went away
        finally:
            writer.close()


class Names:
    """The name server of everything."""

    def __init__(self, zone: Path) -> None:
        self._zone = zone
        self._asked: Counter[tuple[str, int]] = Counter()
        self._sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._sock.bind(("::", 53))

    def serve_forever(self) -> None:
        """Answer."""
        while True:
            data, sender = self._sock.recvfrom(4096)
            self._sock.sendto(self._answer(data), sender)

    def _answer(self, data: bytes) -> bytes:
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, kind = ".".join(labels).lower(), struct.unpack_from("!H", data, at + 1)[0]
        write_down({"kind": "dns", "name": name, "type": kind})
        found = json.loads(self._zone.read_text()).get(name)
        if found is None:
            return data[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + data[12 : at + 5]
        turns = [answer if isinstance(answer, list) else [answer] for answer in found]
        chosen = turns[self._asked[name, kind] % len(turns)]
        self._asked[name, kind] += 1
        packed = [ip_address(text).packed for text in chosen if (kind == 1) == ("." in text and ":" not in text)]
        packed = packed if kind in (1, 28) else []
        records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(item)) + item for item in packed)
        return data[:2] + b"\x81\x80\0\1" + struct.pack("!H", len(packed)) + b"\0\0\0\0" + data[12 : at + 5] + records


_lock = threading.Lock()


def write_down(event: dict[str, Any]) -> None:
    """One line of the diary."""
    with _lock:
        Handler.diary.write(json.dumps(event) + "\n")
        Handler.diary.flush()


def main(directory: Path) -> None:
    """Serve until killed; says so on standard output once it does."""
    Handler.diary = (directory / "diary.jsonl").open("a")
    servers: list[Any] = [Server(("::", port), Handler) for port in (80, 8080, 443)]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem", directory / "server.key")
    servers[2].socket = context.wrap_socket(servers[2].socket, server_side=True, do_handshake_on_connect=False)
    for server in (*servers, Greeter(22), Greeter(2222), Crowd(8000), Names(directory / "zone.json")):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
