"""The launcher: a small process with one thread that starts templates, so that the node never forks.

It is started before the node's event loop, with nothing but one socket, and holds no secret: a fresh interpreter, not
a fork of the node. It ends when that socket does, and with it, by their parent-death signals, all templates.

Node to launcher (SEQPACKET, JSON): `start` with a plan and descriptors (the template's end of its control channel, its
log, the cgroup.procs files of the groups that it is to be in); `supervise` with a descriptor, the other end of the
node's channel to a supervisor. Launcher to node: `started` with the template's pid and a pidfd of it, or `failed`;
`ended` when a template's middle process has been reaped; `probed`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from hotbed.guest import frames, kernel
from hotbed.runtime import birth
from hotbed.runtime.linux import identity
from hotbed.runtime.linux.identity import Ids
from hotbed.runtime.livefork import keeper
from hotbed.runtime.replay import supervisor

MESSAGE_LIMIT = 1 << 18
_FDS_ROOM = socket.CMSG_SPACE(8 * 4)
_BIRTH_TIMEOUT_S = 20.0
_SUPERVISED = 3
_NO_TEMPLATE = 0


def spawn() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a launcher. Call it before the event loop starts; close the socket to end it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    source = str(Path(__file__).resolve().parents[2])
    code = (
        f"import sys; sys.path.insert(0, {source!r}); from hotbed.runtime.launcher import main; main({theirs.fileno()})"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code], pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, close_fds=True
    )
    theirs.close()
    return process, ours


class Launcher:
    """The serving side, inside the launcher process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._middles: dict[int, tuple[int, int]] = {}  # pidfd: (pid, key)

    def serve(self) -> NoReturn:
        """Until the node is gone."""
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._control.fileno():
                    self._receive()
                else:
                    self._reap(fd)

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self._control.recvmsg(MESSAGE_LIMIT, _FDS_ROOM, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            os._exit(0)
        fds = frames.unpack_fds(ancillary)
        if not data:
            os._exit(0)
        message = json.loads(data)
        try:
            if message["op"] == "start":
                self._start(message["key"], message["plan"], *fds)
            elif message["op"] == "supervise":
                self._supervise(fds[0], message.get("over", "replay"))
        finally:
            for fd in fds:
                os.close(fd)

    def _start(self, key: int, plan: dict[str, Any], control: int, log: int, *groups: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_BIRTH_TIMEOUT_S)
        middle = os.fork()
        if middle == 0:
            ours.close()
            self._control.close()
            birth.run_middle(plan, theirs, control, log)
        theirs.close()
        pidfd = kernel.pidfd_open(middle)
        self._middles[pidfd] = (middle, key)
        self._poll.register(pidfd, select.POLLIN)
        try:
            for group in groups:  # it waits for an answer before it does anything that takes memory
                os.write(group, b"%d" % middle)
            template = _attend(ours, middle, Ids(**plan["ids"]))
            handle = kernel.pidfd_open(template)
        except OSError as error:
            kernel.pidfd_kill(pidfd, 9)
            self._send({"op": "failed", "key": key, "message": str(error)})
            return
        finally:
            ours.close()
        self._send({"op": "started", "key": key, "pid": template}, handle)
        os.close(handle)

    def _supervise(self, control: int, over: str) -> None:
        supervisor = os.fork()
        if supervisor == 0:
            _become_supervisor(control, over)
        pidfd = kernel.pidfd_open(supervisor)
        self._middles[pidfd] = (supervisor, _NO_TEMPLATE)
        self._poll.register(pidfd, select.POLLIN)

    def _reap(self, pidfd: int) -> None:
        pid, key = self._middles.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._send({"op": "ended", "key": key, "status": status})

    def _send(self, message: dict[str, Any], *fds: int) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], list(fds))
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)


def _become_supervisor(control: int, over: str) -> NoReturn:
    """In a fork of the launcher: serve seeded rollouts, live forks or egress, and hold nothing of the launcher's."""
    try:
        os.dup2(control, _SUPERVISED)
        kernel.close_from(_SUPERVISED + 1)
        _serve(over)(socket.socket(fileno=_SUPERVISED))
    finally:
        os._exit(1)


def _serve(over: str) -> Callable[[socket.socket], NoReturn]:
    if over == "images":
        from hotbed.runtime.images import mason  # here, as a node that builds no image need not load it

        return mason.run
    if over == "egress":
        from hotbed.runtime.egress import broker  # an event loop and much else: nothing for the launcher itself

        return broker.run
    return keeper.run if over == "livefork" else supervisor.run


def _attend(birth_socket: socket.socket, middle: int, ids: Ids) -> int:
    """Answer a middle process until its template has exec-ed; the template's pid. Raises what it reports."""
    template = 0
    while True:
        message = birth_socket.recv(8192)
        word, _, rest = message.decode(errors="replace").partition(" ")
        if word == "unshared":
            birth_socket.send(_map(middle, ids))
        elif word == "pid":
            template = int(rest)
        elif word == "error":
            raise OSError(rest)
        elif template:
            return template
        else:
            raise OSError("the template's first process died before it could report")


def _map(middle: int, ids: Ids) -> bytes:
    try:
        identity.write_maps(middle, ids)
    except OSError as error:
        return f"writing the id maps: {error}".encode()
    return b"mapped"


def main(fd: int) -> NoReturn:
    """Serve the inherited socket."""
    control = socket.socket(fileno=fd)
    control.set_inheritable(False)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    os.chdir("/")
    Launcher(control).serve()
