"""Guest programs: modules of this package that serve a channel in a fork of the warm interpreter."""

from __future__ import annotations

import errno
import importlib
import os
import re
import resource
import signal
import socket
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Mapping, NoReturn, Optional, Sequence

from .. import kernel, places
from . import runner
from .box import NULL, Box
from .capture import Capture, pipes
from .child import become
from .execs import enter
from .forking import fork
from .job import Job
from .request import Refused, pin_of, refusal
from .reseed import reseed
from .runner import Work
from .stdio import Stdio
from .verdict import decide, decode

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_OUTPUT_BYTES = 1 << 20
_KILL_BYTES = 8 << 30
_PIDS_SPENT = 64


class Program:
    """One running program; an `ended` frame tells how it went."""

    def __init__(self, box: Box, header: Mapping[str, Any], stdio: Stdio, on_end: Callable[[Program], None]) -> None:
        self.box = box
        self.id = str(header.get("id"))
        self._header = header
        self._stdio = stdio
        self._on_end = on_end
        limits = header.get("limits") or {}
        capture = Capture(int(limits.get("output_bytes", _OUTPUT_BYTES)))
        kill_bytes = int(limits.get("output_kill_bytes", _KILL_BYTES))
        self.job = Job(box, capture, kill_bytes=kill_bytes, on_leader_end=self._leader_ended)

    def start(self, channel: int, pin: Optional[int] = None) -> None:
        """Fork it; `pin` is a channel to the supervisor. Both stay the caller's to close. Raises `Refused`."""
        name, limits = self._header.get("program"), self._header.get("limits") or {}
        if type(name) is not str or not _NAME.fullmatch(name):
            raise Refused("bad_request", f"program {name!r} is not a name")
        module = find(name)
        enter(self._header.get("cwd") or self.box.config.get("cwd"))
        try:
            ends, outs = pipes()
            mark = self.box.marks.next()
            pid = fork_as(self._header.get("as_pid"))
        except OSError as error:
            raise refusal(error, f"cannot start {name}") from None
        if pid == 0:
            run(module, self._header, self._stdio, (NULL, *outs), channel, pin)
        for fd in outs:
            os.close(fd)
        self.job.begin(ends, mark, limits.get("wall_s"))
        self.job.follow(pid)
        handles = [kernel.pidfd_open(pid)] if self._header.get("handle") else []
        self.box.send({"op": "started", "id": self.id, "pid": pid}, b"", handles)
        for handle in handles:
            os.close(handle)

    def _leader_ended(self, status: int, usage: resource.struct_rusage) -> None:
        self.job.finish()
        kept = self.job.capture.kept()
        outcome, exit_code, number = decide(self.job.evidence(*decode(status), usage.ru_maxrss))
        header: Dict[str, Any] = {"op": "ended", "id": self.id, "status": outcome, "exit_code": exit_code}
        header.update(signal=number, stdout=len(kept.stdout), stderr=len(kept.stderr))
        header.update(cpu_us=int((usage.ru_utime + usage.ru_stime) * 1e6), maxrss_kib=usage.ru_maxrss)
        self._on_end(self)
        self.box.send(header, kept.stdout + kept.stderr)


def fork_as(wanted: Optional[int]) -> int:
    """Fork; if a pid is wanted, spend the ones before it. The child goes on only if it has it. Raises OSError."""
    while True:
        pid = fork()
        if wanted is None or pid == wanted:
            return pid
        if pid == 0:
            if os.getpid() == wanted:
                return 0
            os._exit(0)
        if pid > wanted or wanted > _PIDS_SPENT:
            raise OSError(errno.EBUSY, f"process number {wanted} is taken")


def find(name: str) -> ModuleType:
    """The module of a program; the template has imported it, for a sandbox does not see our files."""
    full = places.module_of(name)
    module = _hidden.get(full) or sys.modules.get(full)
    if module is None:
        try:
            module = importlib.import_module(full)
        except ImportError as error:
            raise Refused("not_found", f"there is no program {name}: {error}") from None
    if not callable(getattr(module, "main", None)):
        raise Refused("not_found", f"{name} is not a program")
    return module


_hidden: Dict[str, ModuleType] = {}


def conceal() -> None:
    """Take this package out of sys.modules and sys.path: what runs in a fork must not import it. Idempotent."""
    if _hidden:
        return
    top = (__package__ or "").split(".")[0]
    for name in [name for name in sys.modules if name == top or name.startswith(top + ".")]:
        _hidden[name] = sys.modules.pop(name)


def run(
    module: ModuleType,
    header: Mapping[str, Any],
    stdio: Stdio,
    fds: Sequence[int],
    channel: int,
    pin: Optional[int] = None,
) -> NoReturn:
    """In the fork: serve the channel. Never returns."""
    code: Optional[int] = 70
    try:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        work = Work(b"", (), header.get("env") or {}, pin=pin_of(header))
        if pin is not None:
            work = runner.pin(work, pin)
        kept = become(*fds, keep=channel)
        limit_cpu((header.get("limits") or {}).get("cpu_s"))
        os.environ.update(work.env)
        reseed(work.entropy)
        stdio.install(None)
        sys.path.insert(0, os.getcwd())
        module.main(socket.socket(fileno=kept), dict(header.get("config") or {}))
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  # boundary: whatever a program does, it ends here and is told
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        stdio.flush()
        os._exit((code or 0) & 0xFF)


def limit_cpu(seconds: Optional[float]) -> None:
    """SIGXCPU's default action ends the program; a second later SIGKILL does."""
    if seconds is not None:
        whole = max(1, int(seconds + 0.999))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        if hard != resource.RLIM_INFINITY:
            whole = min(whole, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (whole, hard if hard != resource.RLIM_INFINITY else whole + 1))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
