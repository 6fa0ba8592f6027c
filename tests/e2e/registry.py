"""A registry on loopback, with as much of the protocol as a pull takes, over one layout."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any


@dataclass(slots=True, kw_only=True)
class Served:
    """One image's reference, and the digests of the blobs that were fetched.

    No layer is sent while the gate is closed; then `waiting` says that one was asked for.
    """

    layout: Path
    reference: str = ""
    fetched: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection."""

    def __init__(self, served: Served, *rest: Any) -> None:
        self.served = served
        super().__init__(*rest)

    def do_GET(self) -> None:
        """A blob or a manifest, by its digest or its tag."""
        name = self.path.rpartition("/")[2]
        if not name.startswith("sha256:"):
            name = json.loads((self.served.layout / "index.json").read_text())["manifests"][0]["digest"]
        data = b"{}" if self.path == "/v2/" else (self.served.layout / "blobs/sha256" / name[7:]).read_bytes()
        if self.command == "GET" and "/blobs/" in self.path:
            self.served.fetched.append(name[7:])
            if data[:1] != b"{":
                self.served.waiting.set()
                self.served.gate.wait(60)
        self.send_response(200)
        if "manifests" in self.path:
            self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.write(data)

    do_HEAD = do_GET

    def write(self, data: bytes) -> None:
        """To whoever may have gone meanwhile."""
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@contextmanager
def serving(layout: Path) -> Iterator[Served]:
    """A registry with the first image of a layout, its gate open."""
    served = Served(layout=layout)
    served.gate.set()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, served))
    served.reference = f"127.0.0.1:{server.server_port}/a/b:latest"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
