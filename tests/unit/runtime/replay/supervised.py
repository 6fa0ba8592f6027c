"""A real supervisor process, and children that are pinned by it as a sandbox's first process is."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

from hotbed.guest import kernel
from hotbed.guest.agent.pinning import Pinning
from hotbed.runtime.replay import supervisor
from hotbed.runtime.replay.request import PinRequest

SEED = bytes(range(32))
OTHER_SEED = bytes(32)


class Supervised:
    """One supervisor, driven as a node does."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self.control.close()
            supervisor.run(theirs)
        theirs.close()
        self._last = 0

    def pin(self, seed: bytes = SEED, level: Any = "rng", roots: int = 1) -> tuple[int, socket.socket]:
        """Announce a pin; its id and the channel for the process to be pinned."""
        self._last += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        message = {"op": "pin", "id": self._last, **PinRequest(seed=seed, level=level, roots=roots).to_wire()}
        socket.send_fds(self.control, [json.dumps(message).encode()], [ours.fileno()])
        ours.close()
        return self._last, theirs

    def pin_ahead(self) -> tuple[int, socket.socket]:
        """The same without a seed, for now."""
        self._last += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.control, [json.dumps({"op": "pin", "id": self._last}).encode()], [ours.fileno()])
        ours.close()
        return self._last, theirs

    def seed(self, pin_id: int, seed: bytes = SEED) -> None:
        """What a pin that was put on ahead is pinned by."""
        self.control.send(json.dumps({"op": "seed", "id": pin_id, **PinRequest(seed=seed).to_wire()}).encode())

    def drop(self, pin_id: int) -> None:
        """Hear no more of a pin."""
        self.control.send(json.dumps({"op": "drop", "id": pin_id}).encode())

    def ask(self, pin_id: int) -> dict[str, Any]:
        """The report about a pin that is still running."""
        self.control.send(json.dumps({"op": "report", "id": pin_id}).encode())
        answer: dict[str, Any] = json.loads(self.control.recv(1 << 16))
        return answer

    def final(self, pin_id: int) -> dict[str, Any]:
        """Wait until a pin has ended or failed; the report."""
        while True:
            report: dict[str, Any] = json.loads(self.control.recv(1 << 16))
            if report["id"] == pin_id and (report["ended"] or report["state"] == "failed"):
                return report

    def run(self, program: Callable[[], object], seed: bytes = SEED, level: str = "rng") -> tuple[str, dict[str, Any]]:
        """Run a function in a pinned child: the text of what it returned, and the final report."""
        pin_id, channel = self.pin(seed, level)
        source, sink = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                gc.disable()  # hypothesis reads a clock at each collection, and every reading of it counts
                kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
                Pinning().enter(channel, level)
                os.write(sink, str(program()).encode())
            finally:
                os._exit(0)
        channel.close()
        os.close(sink)
        with open(source) as file:
            text = file.read()
        os.waitpid(pid, 0)
        return text, self.final(pin_id)

    def kill(self) -> None:
        """The worst that can happen to it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def kill_from_child(self) -> None:
        """The same, from a process that is not its parent."""
        os.kill(self.pid, signal.SIGKILL)
        self.control.close()

    def close(self) -> None:
        """End it the usual way."""
        self.control.close()
        if self.pid:
            os.waitpid(self.pid, 0)


@contextlib.contextmanager
def supervised() -> Iterator[Supervised]:
    """A supervisor for the length of a block."""
    one = Supervised()
    try:
        yield one
    finally:
        one.close()
