"""A program in the agent's place: the sandbox's only process.

For environments of which there are many. An agent beside each would double what each one holds while it waits, and all
that it would do is wait too. So the agent becomes the program: it answers one last time, and from then on nothing can
be asked of the sandbox. Its end is the program's end, told by the template that reaps it.

What the program prints goes to the two descriptors that came along, files that the node can read at any time. The
agent's socket stays open, above the descriptors that programs use, because its end is how the node tells a sandbox to
end; nothing is read from it any more.

As pid 1 of its namespace the program gets no signal from inside whose action is the default one (man 7 pid_namespaces):
a crash still ends it, `os.kill(os.getpid(), SIGTERM)` does not.
"""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import sys
from typing import Any, List, Mapping, NoReturn

from . import child, kernel
from .box import Box
from .execs import enter
from .request import Refused
from .reseed import reseed
from .stdio import Stdio

_CHANNEL = 3


def take_over(box: Box, header: Mapping[str, Any], fds: List[int], stdio: Stdio, module: Any) -> NoReturn:
    """Be the program from now on. `fds` are its channel, stdout and stderr. Raises `Refused` while it still can."""
    if len(fds) != 3:
        raise Refused("bad_request", "become needs three descriptors: a channel, stdout and stderr")
    if box.started:
        raise Refused("busy", "something has run in this sandbox")
    enter(header.get("cwd") or box.config.get("cwd"))
    box.send({"op": "became", "id": header.get("id"), "ready_ns": box.ready_ns})
    _arrange(box, fds)
    code = 70
    try:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        _limit_files(box.config.get("limits") or {})
        os.environ.update(header.get("env") or {})
        reseed()
        stdio.install(None)
        sys.path.insert(0, os.getcwd())
        module.main(socket.socket(fileno=_CHANNEL), dict(header.get("config") or {}))
        code = 0
    except BaseException:  # noqa: BLE001  # boundary: whatever a program does, it ends here and is told
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        stdio.flush()
        os._exit(code)


def _arrange(box: Box, fds: List[int]) -> None:
    """The channel at 3, the prints at 1 and 2, the agent's socket out of the way, nothing else; fresh signals."""
    top = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    above = top - 1 - len(fds)
    agent, channel, out, err = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in (box.connection.fileno(), *fds))
    box.connection.sock.detach()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.closerange(_CHANNEL + 1, agent)
    os.closerange(agent + 1, top)
    child.reset_signals()
    os.umask(0o022)


def _limit_files(limits: Mapping[str, Any]) -> None:
    """What is printed goes to files that no quota of the sandbox counts, so each file is bounded by itself."""
    if "disk_mib" in limits:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limits["disk_mib"]) << 20, hard))
