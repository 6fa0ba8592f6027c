"""Environment servers as plain processes: the client's half of a pool tested without a node.

One helper process forks them, as an agent would, so that a test costs milliseconds; it tells how each ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hotbed.guest
from hotbed.pools.control import Grant, Output, WorkerEnd
from hotbed.pools.stopwatch import Span
from hotbed.wire.pools import Episode

FORKER = """
import json, os, signal, socket, sys, time
sys.path.insert(0, sys.argv[2])
from guest.environments import env_server
control = socket.socket(fileno=int(sys.argv[1]))
alive = {}
while True:
    data, fds, _, _ = socket.recv_fds(control, 65536, 2)
    if not data:
        break
    ask = json.loads(data)
    if ask["op"] == "preload":
        env_server.preload(ask["path"])
        answer = {}
    elif ask["op"] == "start":
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(ask["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            os.dup2(2, 1)
            os.dup2(fds[0], 3)
            os.closerange(4, 1 << 20)
            code = 1
            try:
                env_server.main(socket.socket(fileno=3), {"path": ask["path"]})
                code = 0
            finally:
                os._exit(code)
        for fd in fds:
            os.close(fd)
        answer = {"pid": pid}
    else:
        pid = ask["pid"]
        found, status = os.waitpid(pid, os.WNOHANG)
        patience = time.monotonic() + (0.2 if ask["patient"] else 0)
        while not found and time.monotonic() < patience:
            time.sleep(0.001)
            found, status = os.waitpid(pid, os.WNOHANG)
        if not found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            status = None
        answer = {"status": status}
    control.send(json.dumps(answer).encode())
"""


class LocalWorkers:
    """A `Control` over plain processes. `refuse` holds the indices that get no worker."""

    def __init__(self, path: Path, *, preload: bool = False) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        guest = str(Path(hotbed.guest.__file__).parent.parent)
        command = [sys.executable, "-I", "-S", "-c", FORKER, str(theirs.fileno()), guest]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._control = ours
        self.path = path
        self.pids: dict[int, int] = {}
        self.opened: list[int] = []
        self.ended: list[int] = []
        self.refuse: set[int] = set()
        self.spans: list[Span] = []
        self.episodes: list[Episode] = []
        if preload:
            self._ask({"op": "preload", "path": str(path)})

    def open(self, indices: Sequence[int]) -> Sequence[Grant]:
        """Fork a server for each."""
        return [self._open(index) for index in indices]

    def _open(self, index: int) -> Grant:
        if index in self.pids:
            self._end(index, patient=False)
        if index in self.refuse:
            return Grant(index=index, reason="no room")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = {"op": "start", "path": str(self.path), "log": str(self.log(index))}
        self.pids[index] = self._ask(asked, [theirs.fileno()])["pid"]
        theirs.close()
        self.opened.append(index)
        return Grant(index=index, sock=ours, isolation="none")

    def record(self, episodes: Sequence[Episode]) -> None:
        """Keep them."""
        self.episodes += episodes

    def waited(self, spans: Sequence[Span]) -> None:
        """Keep it."""
        self.spans += spans

    def end(self, troubles: Mapping[int, str]) -> Mapping[int, WorkerEnd]:
        """Kill and reap each."""
        self.ended += troubles
        return {index: self._end(index, patient=trouble == "closed") for index, trouble in troubles.items()}

    def _end(self, index: int, *, patient: bool) -> WorkerEnd:
        status = self._ask({"op": "end", "pid": self.pids.pop(index), "patient": patient})["status"]
        stderr = self.log(index).read_text(errors="replace")
        if status is None:
            return WorkerEnd(index=index, status="ok", stderr=stderr)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return WorkerEnd(index=index, status="signal", signal=-code, stderr=stderr)
        return WorkerEnd(index=index, status="ok" if code == 0 else "exit", exit_code=code, stderr=stderr)

    def output(self, index: int) -> Output:
        """What it printed."""
        return Output(stdout=self.log(index).read_text())

    def log(self, index: int) -> Path:
        """Where it prints."""
        return self.path.parent / f"log-{index}"

    def kill(self, index: int) -> None:
        """Kill one from outside."""
        os.kill(self.pids[index], signal.SIGKILL)

    def close(self) -> None:
        """End all."""
        for index in list(self.pids):
            self._end(index, patient=False)
        self._control.close()
        self._process.wait(10)

    def _ask(self, ask: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        socket.send_fds(self._control, [json.dumps(ask).encode()], list(fds))
        answer: dict[str, Any] = json.loads(self._control.recv(65536))
        return answer
