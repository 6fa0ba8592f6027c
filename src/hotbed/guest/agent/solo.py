"""A sandbox with one process in it: the program itself, and no agent.

For environments of which there are many. An agent beside each would double what each one holds while it waits, and all
that it would do is wait too. The program is named by the message that asks for the fork, its channel lies where an
agent's socket would, and nothing can be asked of the sandbox: its end is the program's, told by the template that reaps
it. What the program prints goes to two files that the node holds as well.

This runs in every such fork and what it touches is copied for each, so it does no more than it must.

As pid 1 of its namespace the program gets no signal from inside whose action is the default one (man 7 pid_namespaces):
a crash still ends it, `os.kill(os.getpid(), SIGTERM)` does not.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from typing import Any, Mapping, NoReturn

from .. import kernel
from . import child, programs
from .reseed import reseed
from .stdio import Stdio

_KEPT = 2 << 20
_PRINTS = 4  # after the channel, and after the counters of the cgroups


def run(channel: socket.socket, config: Mapping[str, Any], stdio: Stdio) -> NoReturn:
    """Be the program that the spawn message named."""
    code = 70
    try:
        _arrange(_PRINTS + len(config.get("events", ())))
        _limit_files(config["limits"]["disk_mib"])
        stdio.keep(_KEPT)
        os.chdir(config["cwd"])
        program = programs.find(config["solo"]["program"])
        if getattr(program, "RESEEDS", True):
            reseed()
        program.main(channel, config["solo"]["config"])
        code = 0
    except BaseException:  # noqa: BLE001  # boundary: whatever a program does, it ends here and is told
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        stdio.flush()
        os._exit(code)


def _arrange(out: int) -> None:
    """A session of its own, for a signal to a process group knows no pid namespaces: it would reach the siblings.

    What is printed goes to the two descriptors from `out` on; nothing but the channel stays beside them.
    """
    child._setsid()
    os.dup2(out, 1)
    os.dup2(out + 1, 2)
    kernel.close_from(_PRINTS)
    child.reset_signals()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    os.umask(0o022)


def _limit_files(disk_mib: int) -> None:
    """No quota of the sandbox counts the files that it prints to, so each file is bounded by itself."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (disk_mib << 20, hard))
