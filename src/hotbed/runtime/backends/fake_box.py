"""One box of the fake backend: a directory, and the processes started for it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from hotbed.errors import (
    BadPath,
    Error,
    FileMissing,
    NotAFile,
    NotSupported,
    PortClosed,
    SandboxFailed,
    SandboxGone,
)
from hotbed.guest.agent.capture import Capture
from hotbed.runtime.backends.fake_files import describe, file_error, read_tar, write_tar
from hotbed.runtime.backends.fake_input import FakeRunning
from hotbed.runtime.backends.fake_run import Launch, Run, kill_marked, run_launches
from hotbed.runtime.base import ExecOutcome, ExecRequest, Limits, OnOutput, Program, check_path
from hotbed.runtime.running import OnStart
from hotbed.runtime.standing import Interpreter

DIRECTORIES = ("work", "workspace", "tmp", "var/tmp", "root", "run")
_PATHS = re.compile(rb"(?<![\w./-])/(work|workspace|tmp|var/tmp)(?![\w-])")
# Runs the program given as a file, as the warm interpreter would: as __main__, with its own arguments.
_BOOT = (
    "import sys; _p = sys.argv[1]; sys.argv[:2] = ['-c']; sys.path[0] = '';"
    "exec(compile(open(_p, 'rb').read(), '<code>', 'exec'), {'__name__': '__main__', '__builtins__': __builtins__})"
)


class FakeBox:
    """A box until it is killed."""

    isolation = "fake"
    warm_hit = False
    interpreter: Interpreter | None = None

    def __init__(
        self, number: int, root: str, *, limits: Limits, env: Mapping[str, str], on_gone: Callable[[FakeBox], None]
    ) -> None:
        began = time.perf_counter()
        self.id = number
        self.root = self._root = root
        self._limits = limits
        self._env = env
        self._on_gone = on_gone
        self._lingering: set[int] = set()
        self._execs = 0
        self._cpu_us = 0
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        for name in DIRECTORIES:
            os.makedirs(os.path.join(root, name), exist_ok=True)
        self.fork_time_ms = (time.perf_counter() - began) * 1e3

    async def ready(self) -> None:
        """It is, from the start."""
        self._check_alive()

    async def exec(
        self, request: ExecRequest, on_output: OnOutput | None = None, on_start: OnStart | None = None
    ) -> ExecOutcome:
        """Run one thing to its end."""
        self._check_alive()
        if request.terminal is not None:
            raise NotSupported("the fake backend has no terminals", hint="use the fork backend")
        if request.cwd is not None:
            self._check_directory(request.cwd)
        for path, data, mode in request.files:
            self._write_file(path, data, mode)
        launches = [self._launch(request, argv) for argv in self._argvs(request)]
        self._execs += 1
        kept = self._limits.output_bytes
        run = Run(
            root=os.fsencode(self._root),
            mark=f"{self._root}#{self._execs};",
            capture=Capture(kept if request.output_bytes is None else min(request.output_bytes, kept)),
            gone=self._gone,
            lingering=self._lingering,
            output_kill_bytes=self._limits.output_kill_bytes,
        )
        if on_start is not None:
            run.on_start = lambda: on_start(FakeRunning(run))
        outcome = await run_launches(launches, request, run, on_output)
        self._cpu_us += outcome.cpu_us
        self._check_alive()
        return outcome if request.seed is None else replace(outcome, seed_ack="no-ack")

    def _check_directory(self, path: str) -> None:
        try:
            found = os.stat(self._inside(path))
        except OSError as error:
            raise file_error(error, path) from None
        if not stat.S_ISDIR(found.st_mode):
            raise BadPath(f"{path} is not a directory")

    async def start(
        self, program: str, config: Mapping[str, Any], channel: socket.socket, *, env: Mapping[str, str] | None = None
    ) -> Program:
        """Guest programs need a real sandbox."""
        channel.close()
        raise SandboxFailed(
            f"the fake backend runs no guest programs, such as {program!r}", hint="use the fork backend"
        )

    async def open(self, path: str, mode: Literal["r", "w", "a"], perm: int = 0o644) -> tuple[int, int]:
        """A descriptor of a regular file, and its size."""
        self._check_alive()
        flags = {
            "r": os.O_RDONLY,
            "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
            "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        }
        inside = self._inside(path)
        try:
            if mode != "r":
                os.makedirs(os.path.dirname(inside), exist_ok=True)
            fd = os.open(inside, flags[mode] | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, perm)
        except OSError as error:
            raise file_error(error, path) from None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise NotAFile(f"{path} is not a regular file")
        if mode == "w":
            os.fchmod(fd, perm)
        return fd, found.st_size

    async def dial(self, port: int) -> socket.socket:
        """It isolates nothing: what listens inside listens on this host."""
        self._check_alive()
        connection = socket.socket()
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        except OSError:
            connection.close()
            raise PortClosed(f"nothing in the sandbox listens on port {port}") from None
        return connection

    async def pack(self, path: str) -> int:
        """A pipe that yields a tar of `path`."""
        self._check_alive()
        inside = self._inside(path)
        if not os.path.lexists(inside):
            raise FileMissing(f"no file {path}")
        reader, writer = os.pipe()
        asyncio.get_running_loop().run_in_executor(None, write_tar, inside, writer)
        return reader

    async def unpack(self, path: str, source: int) -> int:
        """Extract the tar that `source` yields."""
        try:
            self._check_alive()
            inside = self._inside(path)
        except Error:
            os.close(source)
            raise
        return await asyncio.get_running_loop().run_in_executor(None, read_tar, inside, source)

    async def files(self, operation: Literal["stat", "list", "remove", "mkdir"], path: str) -> Mapping[str, Any]:
        """Look at or change files."""
        self._check_alive()
        inside = self._inside(path)
        try:
            if operation == "stat":
                return describe(inside)
            if operation == "list":
                return {"entries": [describe(entry.path) for entry in sorted(os.scandir(inside), key=lambda e: e.name)]}
            if operation == "mkdir":
                os.makedirs(inside, exist_ok=True)
            elif os.path.isdir(inside) and not os.path.islink(inside):
                shutil.rmtree(inside)
            else:
                os.unlink(inside)
        except OSError as error:
            raise file_error(error, path) from None
        return {}

    def ran_out_of_memory(self) -> bool:
        """It counts no memory."""
        return False

    def cpu_s(self) -> float:
        """What its execs took."""
        return self._cpu_us / 1e6

    def waited_s(self) -> float:
        """It keeps no such account."""
        return 0.0

    async def kill(self) -> None:
        """End its processes and remove its directory. Idempotent."""
        if self._gone.done():
            return
        self._gone.set_result("killed")
        if self._execs:
            kill_marked(f"{self._root}#")
        for fd in self._lingering:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        self._lingering.clear()
        shutil.rmtree(self._root, ignore_errors=True)
        self._on_gone(self)

    def when_gone(self, call: Callable[[str], None]) -> None:
        """Have something called when it has been killed."""
        self._gone.add_done_callback(lambda gone: call(gone.result()))

    async def wait_gone(self) -> str:
        """Wait until it has been killed."""
        return await asyncio.shield(self._gone)

    def _check_alive(self) -> None:
        if self._gone.done():
            raise SandboxGone("the sandbox has ended")

    def _inside(self, path: str) -> str:
        """A sandbox path as one of this host, never outside the box's directory."""
        check_path(path)
        resolved = os.path.realpath(self._root + os.path.normpath(path))
        if resolved != self._root and not resolved.startswith(self._root + "/"):
            raise BadPath(f"{path} leads out of the sandbox")
        return resolved

    def _write_file(self, path: str, data: bytes, mode: int) -> None:
        inside = self._inside(path)
        try:
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            with open(inside, "wb") as file:
                file.write(data)
            os.chmod(inside, mode)
        except OSError as error:
            raise file_error(error, path) from None

    def _argvs(self, request: ExecRequest) -> list[list[bytes | str]]:
        if request.kind == "commands":
            return [[self._rewrite(argument) for argument in argv] for argv in request.argv]
        program = self._rewrite(request.program)
        if request.kind == "command":
            return [["/bin/sh", "-c", program]]
        if self.interpreter is not None and not self.interpreter.file:
            raise NotSupported("the fake backend has no interpreter that waits", hint="use the fork backend")
        path = os.path.join(self._root, f".code-{self._execs + 1}")
        with open(path, "wb") as file:
            file.write(program)
        if self.interpreter is not None:
            return [["/bin/sh", "-c", f'exec {self.interpreter.file} "$0" "$@"', path, *request.args]]
        return [[sys.executable, "-c", _BOOT, path, *request.args]]

    def _launch(self, request: ExecRequest, argv: list[bytes | str]) -> Launch:
        cwd = self._inside(request.cwd or "/work")
        env = {
            "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
            "HOME": os.path.join(self._root, "work"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": os.path.join(self._root, "tmp"),
            **self._env,
            **request.env,
        }
        return Launch(argv=tuple(argv), cwd=cwd, env=env)

    def _rewrite(self, text: str | bytes) -> bytes:
        data = text if isinstance(text, bytes) else os.fsencode(text)
        return _PATHS.sub(lambda found: os.fsencode(self._root) + found.group(), data)
