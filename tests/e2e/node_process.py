"""A node as a process of its own, for tests that start, signal and kill one."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BOOT = """
import json, sys
from hotbed.cli.main import Error, Output, report
from hotbed.server.serving import run
from hotbed.server.settings import read_settings
try:
    run(read_settings(json.loads(sys.argv[1])), ready_fd=int(sys.argv[2]))
except Error as error:
    sys.exit(report(error, Output()))
"""


class UnixConnection(http.client.HTTPConnection):
    """http.client over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("node", timeout=20)
        self._path = path

    def connect(self) -> None:
        """Dial."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class NodeProcess:
    """A started node."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.socket = directory / "node.sock"
        self.log = directory / "node.log"
        settings = {"socket": str(self.socket), "backend": "fake", **settings}
        reader, writer = os.pipe()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", BOOT, json.dumps(settings), str(writer)], pass_fds=[writer], stderr=log
            )
        os.close(writer)
        try:
            with os.fdopen(reader, "rb") as pipe:
                self.word = json.loads(pipe.readline() or b"{}")
        except BaseException:  # a test's time is over: its node must not outlive it
            self.process.kill()
            raise

    @property
    def pid(self) -> int:
        """The process that serves, which is not the one that was started when it is embedded."""
        return int(self.word["pid"])

    def connect(self) -> UnixConnection:
        """A new connection."""
        return UnixConnection(self.socket)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One request on a connection of its own: status and JSON."""
        connection = self.connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def node_process(directory: Path, **settings: Any) -> Iterator[NodeProcess]:
    """A node that is gone afterwards, however the test went."""
    node = NodeProcess(directory, **settings)
    try:
        yield node
    finally:
        if node.process.poll() is None:
            node.process.kill()
            node.process.wait(20)
