"""The process that answers the stopped calls of every pinned rollout of a node.

One thread, one epoll. The node's control channel (SEQPACKET, JSON) brings `pin` with the channel to the sandbox, asks
for a `report` about one, and says `drop` when it wants to hear no more. A `pin` without a seed is put on ahead, and
gets its `seed` later. Unasked, the supervisor reports when a process is pinned ahead, when a rollout has failed or has
ended. When the control channel ends, so does the process, and with it every listener.

A listener lives exactly as long as this process or its last sandboxed process. So a node that gets a report *after* a
rollout's result, or of its end, knows that every call in it was answered: had the supervisor died, nobody would
report.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

from hotbed.guest import frames
from hotbed.runtime.linux.memory import Memory
from hotbed.runtime.replay.exec_patch import ExecPatch, own_vdso
from hotbed.runtime.replay.pin import Pin
from hotbed.runtime.replay.request import PinRequest
from hotbed.runtime.replay.watcher import Watcher

MESSAGE_LIMIT = 1 << 14
_GARBAGE = 10_000  # things made, of which a pin leaves some hundred: a search for cycles once in many rollouts
_FDS_ROOM = socket.CMSG_SPACE(4 * 4)


class Supervisor:
    """Serves one control channel until its end."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._watcher = Watcher()
        self._pins: dict[int, Pin] = {}
        self._memory = Memory()
        self._patch = ExecPatch(own_vdso())
        self._open = True
        self._watcher.watch(control.fileno(), self._receive)

    def serve(self) -> None:
        """Answer until the control channel ends."""
        while self._open:
            self._watcher.wait()

    def _receive(self, _events: int) -> None:
        try:
            data, ancillary, _, _ = self._control.recvmsg(MESSAGE_LIMIT, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # the node went without reading our last words
            data, ancillary = b"", []
        if not data:
            self._open = False
            return
        message = json.loads(data)
        if message["op"] == "pin":
            self._begin(message, frames.unpack_fds(ancillary)[0])
        else:
            self._order(message, self._pins.get(message["id"]))

    def _order(self, message: dict[str, Any], pin: Pin | None) -> None:
        """What is about one that has begun."""
        if message["op"] == "report":
            self._say(pin.report() if pin is not None else {"id": message["id"], "state": "unknown"})
        elif pin is not None and message["op"] == "seed":
            pin.seed(PinRequest.from_wire(message))
        elif pin is not None and message["op"] == "drop":
            del self._pins[pin.id]
            pin.drop()

    def _begin(self, message: dict[str, Any], channel: int) -> None:
        self._pins[message["id"]] = Pin(
            message["id"],
            PinRequest.from_wire(message) if message.get("seed") else None,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, channel),
            writer=self._memory,
            patch=self._patch,
            watcher=self._watcher,
            on_change=self._changed,
        )

    def _changed(self, pin: Pin) -> None:
        if pin.id in self._pins:
            self._say(pin.report())
            if pin.ended or pin.state == "failed":
                self._pins.pop(pin.id, None)  # these were the last words about it

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionResetError):
            self._open = False


def run(control: socket.socket) -> NoReturn:
    """The supervisor's whole life, in a process of its own."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole group; what ends us is the channel's end
    gc.freeze()  # what came along lives as long as this process, and no call waits while it is walked
    gc.set_threshold(_GARBAGE)
    code = 1
    try:
        Supervisor(control).serve()
        code = 0
    finally:
        os._exit(code)


def main() -> NoReturn:
    """`python -m hotbed.runtime.replay.supervisor FD`: serve an inherited control channel."""
    run(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
