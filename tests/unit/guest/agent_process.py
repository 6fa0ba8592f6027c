"""An agent in a process of its own, over a socketpair: what the node sees of a sandbox, without the isolation.

With `as_pid_1` it is pid 1 of a fresh pid namespace with its own /proc, where the host lets us make one.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotbed.guest import frames
from hotbed.guest.agent import life

NOBODY = 54_321
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000


class AgentProcess:
    """Speaks the agent's protocol, one request at a time unless told otherwise."""

    def __init__(self, cwd: str, *, as_pid_1: bool = False, pids: int = 0, **config: Any) -> None:
        self.cwd = cwd
        self._count = 0
        ours, theirs = socket.socketpair()
        ours.settimeout(20)
        self.connection = frames.Connection(ours)
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            atexit._clear()  # what the test runner does at its end is not for a program's end: a template has no such
            become_agent(theirs, {"cwd": "/" if pids else cwd, **config}, as_pid_1, pids)
        theirs.close()

    def send(self, op: str, body: bytes = b"", fds: Sequence[int] = (), **fields: Any) -> str:
        """Ask for something; the id it was given."""
        self._count += 1
        name = str(fields.pop("id", f"r{self._count}"))
        self.connection.send({"op": op, "id": name, **fields}, body, fds)
        return name

    def receive(self) -> tuple[dict[str, Any], bytes, list[int]]:
        """The next frame."""
        return self.connection.receive()

    def ask(self, op: str, body: bytes = b"", fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Ask and wait for the answer, which brings no descriptor."""
        self.send(op, body, fds, **fields)
        header, _, got = self.receive()
        assert got == []
        return header

    def start_exec(self, kind: str, program: str | bytes = b"", *, stdin: bytes = b"", **fields: Any) -> str:
        """Send an exec request; its id."""
        program = program.encode() if isinstance(program, str) else program
        files = fields.pop("files", [])
        header = {"timeout_s": 10.0, "output_bytes": 16 << 20, "output_kill_bytes": 8 << 30, **fields}
        if files:
            header["files"] = [[path, len(data), mode] for path, data, mode in files]
        body = program + b"".join(data for _, data, _ in files) + stdin
        return self.send("exec", body, kind=kind, program=len(program), stdin=len(stdin), **header)

    def result(self) -> Result:
        """The next frame, which must be a result."""
        header, body, _ = self.receive()
        assert header["op"] == "result", header
        return Result(header, body)

    def run(self, kind: str, program: str | bytes = b"", **fields: Any) -> Result:
        """One exec to its end."""
        self.start_exec(kind, program, **fields)
        return self.result()

    def close(self) -> int:
        """Hang up, which ends the agent; its wait status."""
        self.connection.close()
        return os.waitpid(self.pid, 0)[1]


class Result:
    """A result frame's parts by name."""

    def __init__(self, header: dict[str, Any], body: bytes) -> None:
        self.header = header
        self.stdout = body[: header["stdout"]]
        self.stderr = body[header["stdout"] :]
        self.status, self.exit_code, self.signal = header["status"], header["exit_code"], header["signal"]
        assert len(self.stderr) == header["stderr"]

    def merged(self) -> bytes:
        """Both streams in their order."""
        at, streams, out = [0, 0], (self.stdout, self.stderr), b""
        for number, count in self.header["order"]:
            start = at[number - 1]
            out += streams[number - 1][start : start + count]
            at[number - 1] += count
        return out


def become_agent(sock: socket.socket, config: dict[str, Any], as_pid_1: bool, pids: int) -> None:
    """In the fork: nothing of the test runner's, then the agent. Never returns."""
    try:
        sys.settrace(None)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        number = os.dup2(sock.detach(), 3, inheritable=False)
        os.closerange(4, 4096)
        if pids:
            stop_being_root()
        if as_pid_1 or pids:
            enter_pid_namespace(pids)
        life.main(socket.socket(fileno=number), time.monotonic_ns(), config)
    finally:
        os._exit(99)


def stop_being_root() -> None:
    """No limit of processes counts for root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, which the change of user took away


def enter_pid_namespace(pids: int) -> None:
    """Go on as pid 1 with a /proc of its own; the outer process waits for it.

    The limit of processes, if there is one, is set inside: there nobody is counted but these.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0:
        os._exit(98)
    if pids:
        resource.setrlimit(resource.RLIMIT_NPROC, (pids, pids))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    child = os.fork()
    if child != 0:
        os.close(3)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    if libc.mount(b"proc", b"/proc", b"proc", 0, None) != 0:
        os._exit(98)


def gone(pid: int) -> bool:
    """Whether a process has ended, give or take what the kernel needs for it."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
