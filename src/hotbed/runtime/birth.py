"""From the launcher to a template: two processes and the order of their steps.

The *middle* process is the launcher's child. It makes the namespaces, waits until the launcher has written its id maps,
and then only waits for its own child, the *template*, which is pid 1 of the new pid namespace and execs its interpreter
inside the new user namespace. As root the tree is put together first, with root's eyes; an ordinary user gets the right
to mount only with the user namespace, so puts it together after.
"""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from collections.abc import Mapping
from typing import Any, NoReturn

from hotbed.guest import kernel
from hotbed.guest.template import filters
from hotbed.runtime import imageroots, roots
from hotbed.runtime.linux import identity, mounts
from hotbed.runtime.linux.identity import Ids

_SIGKILL = 9
_NR_PERSONALITY = 135
_NO_RANDOMIZATION = 0x0040000  # ADDR_NO_RANDOMIZE
_ALL = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
_START = "import sys; sys.path[0] = '/.hotbed/lib'; from hotbed.guest.template.start import main; main()"


class Stage:
    """Says what was being done when something failed."""

    def __init__(self) -> None:
        self.name = "start"


def run_middle(plan: dict[str, Any], launcher: socket.socket, control: int, log: int) -> NoReturn:
    """The middle process's whole life; ends with the template's exit status."""
    stage = Stage()
    try:
        template = _make(plan, launcher, control, log, stage)
        launcher.send(b"pid %d" % template)
        launcher.close()
        kernel.close_from(0)
        _, status = os.waitpid(template, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    except BaseException as error:  # noqa: BLE001 (boundary: the last frame of a forked process)
        launcher.send(f"error {stage.name}: {error}".encode()[:4000])
    finally:
        os._exit(1)


def _make(plan: dict[str, Any], launcher: socket.socket, control: int, log: int, stage: Stage) -> int:
    ids = Ids(**plan["ids"])
    root: str = plan["root"]
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    privileged = os.geteuid() == 0
    if privileged:
        stage.name = "mount namespace"
        mounts.own_namespace()
        stage.name = "root filesystem"
        _assemble(plan, root, ids)
        os.setgroups([])
    stage.name = "namespaces"
    kernel.unshare(_ALL)
    _wait_for_maps(launcher)
    stage.name = "identity"
    identity.become_inside_root()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)  # changing ids has cleared it
    if not privileged:
        stage.name = "mount namespace"
        mounts.make_private()
        stage.name = "root filesystem"
        _assemble(plan, root, None)
    stage.name = "template"
    template = os.fork()
    if template == 0:
        _become_template(plan, launcher, control, log)
    return template


def _assemble(plan: dict[str, Any], root: str, owner: Ids | None) -> None:
    (imageroots if "layers" in plan else roots).assemble(plan, root, owner)


def _wait_for_maps(launcher: socket.socket) -> None:
    launcher.send(b"unshared")
    answer = launcher.recv(4096)
    if answer != b"mapped":
        raise OSError(answer.decode() or "the launcher is gone")


def _become_template(plan: dict[str, Any], launcher: socket.socket, control: int, log: int) -> NoReturn:
    stage = "proc and root"
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        roots.finish(plan.get("enter", plan["root"]))
        stage = "interpreter"
        socket.sethostname("template")
        os.setsid()
        launcher = socket.socket(fileno=fcntl.fcntl(launcher.fileno(), fcntl.F_DUPFD_CLOEXEC, 64))
        _keep_only(control, log)
        kernel.call(_NR_PERSONALITY, _NO_RANDOMIZATION)
        if "data_mib" in plan:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (plan["data_mib"] << 20, hard))
        if plan.get("inside"):  # an image's Python is no more to be trusted than what runs in its sandboxes
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            kernel.Filter(filters.template_filter()).install()
        os.execve(plan["executable"], ["python3", "-s", "-S", "-c", _START], _env(plan["env"]))
    except BaseException as error:  # noqa: BLE001 (boundary: the last frame of a forked process)
        launcher.send(f"error {stage}: {error}".encode()[:4000])
    finally:
        os._exit(1)


def _env(env: Mapping[str, str]) -> dict[str, str]:
    """What the interpreter starts with; the template drops what is here for its start only.

    Symbols bound now are bound once; bound lazily, each fork that is the first to use one would pay for it. Hashes and,
    by its personality, addresses are the same in every run of a template, so that a rollout can be replayed in a later
    one. What else steers a Python is for the sandbox's programs, not for the template: it is told by its config.
    """
    plain = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
    return {**plain, "LD_BIND_NOW": "1", "PYTHONHASHSEED": "0"}


def _keep_only(control: int, log: int) -> None:
    """0 is /dev/null, 1 and 2 the log, 3 the control channel. Everything else closes itself at the exec."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    wanted = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in (null, log, log, control)]
    for target, source in enumerate(wanted):
        os.dup2(source, target, inheritable=True)
