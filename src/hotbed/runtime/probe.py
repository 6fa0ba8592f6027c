"""What this host allows, found by trying it in throw-away children, and what to do about what it does not.

Sysctls and config files do not tell: a container's seccomp profile, AppArmor and a namespace limit all look the same
from outside, and like nothing from the files. So each check does the thing, in a child that then exits. Only the hints
are looked up. The children are forks of the calling process, which must have one thread (`hotbed doctor` has).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hotbed.errors import IsolationUnavailable
from hotbed.guest import kernel
from hotbed.guest.template import filters
from hotbed.runtime.linux import cgroups, identity, landlock, mounts
from hotbed.runtime.linux.cgroups import Layout

_NAMESPACES = (
    ("mount", kernel.CLONE_NEWNS),
    ("pid", kernel.CLONE_NEWPID),
    ("network", kernel.CLONE_NEWNET),
    ("ipc", kernel.CLONE_NEWIPC),
    ("uts", kernel.CLONE_NEWUTS),
    ("cgroup", kernel.CLONE_NEWCGROUP),
)
ROOT_HINT = (
    "run the node as an ordinary user, which needs no capability; as root it needs CAP_SYS_ADMIN, CAP_SETUID, "
    "CAP_SETGID and CAP_CHOWN"
)
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE_SYSCTL = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing a host allows or not. `needed` ones decide whether there is isolation at all."""

    name: str
    ok: bool
    detail: str = ""
    hint: str | None = None
    needed: bool = True


def checks() -> list[Check]:
    """Everything, in the order in which it is needed."""
    found = [_platform(), _try("user namespaces", _in_user_namespace(lambda: None), hint=user_namespace_hint())]
    if os.geteuid() == 0:
        found.append(_try("mounts and ids of root's own", _as_root, hint=ROOT_HINT))
    for name, flag in _NAMESPACES:
        found.append(_try(f"{name} namespaces", _in_user_namespace(partial(kernel.unshare, flag))))
    found.append(_try("a /proc of its own", _in_user_namespace(_own_proc), hint=mount_hint()))
    found.append(_try("mounting tmpfs and overlay", _in_user_namespace(_overlay), hint=mount_hint()))
    sealing = mount_hint() or "Linux 5.12 or later"
    found.append(_try("read-only mounts (mount_setattr)", _in_user_namespace(_read_only), hint=sealing))
    found.append(_try("seccomp filters", _seccomp))
    found.append(_limits(cgroups.discover()))
    abi = landlock.abi()
    found.append(Check(name="Landlock", ok=abi > 0, detail=f"ABI {abi}" if abi else "absent", needed=False))
    return found


def isolation_of(found: list[Check]) -> str:
    """The level that results: "fork", or "none"."""
    return "fork" if all(check.ok for check in found if check.needed) else "none"


def report(layout: Layout) -> dict[str, Any]:
    """What a running backend tells about itself."""
    return {
        "backend": "fork",
        "isolation": "fork",
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "python": sys.version.split()[0],
        "cgroups": layout.kind,
        "limits": {
            "memory": "cgroup" if "memory" in layout.controllers else "rlimit per process, and the agent's watch",
            "pids": "cgroup and rlimit" if "pids" in layout.controllers else "rlimit per sandbox",
            "cpu": "cgroup" if "cpu" in layout.controllers else "none",
        },
        "missing": dict(layout.missing),
    }


def usable_cgroups(name: str, launcher: int) -> Layout:
    """The layout to use from now on; v2 needs us in a leaf first, and says so if that does not work."""
    layout = cgroups.discover()
    if layout.kind != "v2":
        return layout
    own = layout.roots()[0]
    try:
        cgroups.occupy_leaf(own, f"{name}-node", (os.getpid(), launcher))
    except OSError as error:
        problem = (
            f"{own}: {error.strerror}; run the node in a group of its own: systemd-run --user --scope -p Delegate=yes"
        )
        return Layout(kind="none", missing=dict.fromkeys(cgroups.CONTROLLERS, problem))
    return layout


def _platform() -> Check:
    detail = f"{os.uname().sysname} {os.uname().release} {os.uname().machine}"
    return Check(
        name="platform", ok=kernel.SUPPORTED, detail=detail, hint="the fork backend knows Linux on x86_64 only"
    )


def _limits(layout: Layout) -> Check:
    missing = "; ".join(f"{name}: {why}" for name, why in layout.missing.items())
    detail = f"{layout.kind}: {', '.join(layout.controllers) or 'none'}" + (f" ({missing})" if missing else "")
    hint = None if layout.controllers else cgroup_hint()
    return Check(name="cgroups", ok=bool(layout.controllers), detail=detail, hint=hint, needed=False)


def _try(name: str, action: Callable[[], None], *, hint: str | None = None) -> Check:
    """Run it in a child; what it raised, if it did."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            action()
            status = 0
        except OSError as error:
            os.write(writer, (error.strerror or str(error)).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        detail = pipe.read(1000).decode()
    ok = os.waitpid(pid, 0)[1] == 0
    return Check(name=name, ok=ok, detail=detail, hint=None if ok else hint)


def _in_user_namespace(action: Callable[[], None]) -> Callable[[], None]:
    """The action, in a user namespace mapped as a template's would be, with a mount namespace of its own."""

    def run() -> None:
        uid, gid = os.geteuid(), os.getegid()
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
        identity.map_only(uid, gid)
        mounts.make_private()
        action()

    return run


def _as_root() -> None:
    """What a node that is root does before it gives its rights up: mounts of its own, and ids that are not root's."""
    try:
        ids = identity.mine()
    except IsolationUnavailable as error:
        raise OSError(error.message) from None
    mounts.own_namespace()
    mounts.tmpfs("/tmp", "size=1m")
    os.chown("/tmp", ids.uid, ids.gid)
    os.setgroups([])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
            os.write(writer, b"1")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    try:
        if os.read(reader, 1):  # else there are no user namespaces at all, and another check says so
            identity.write_maps(child, ids)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _own_proc() -> None:
    """A fresh /proc. The kernel refuses one where parts of that which is there are masked, as containers do."""
    kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            mounts.proc("/proc")
            status = 0
        except OSError as error:
            status = error.errno or status
        finally:
            os._exit(status)
    if refused := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(refused, os.strerror(refused) if refused > 0 else "the child was killed")


def _overlay() -> None:
    mounts.tmpfs("/tmp", "size=1m")
    for name in ("lower", "upper", "work", "merged"):
        os.mkdir("/tmp/" + name)
    options = b"lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr"
    kernel.mount(b"overlay", b"/tmp/merged", b"overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)


def _read_only() -> None:
    mounts.tmpfs("/tmp", "size=1m")
    mounts.seal("/tmp")


def _seccomp() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.Filter(filters.template_filter()).install()


def refusal(message: str) -> IsolationUnavailable:
    """The error for a stage of isolation that this host refused, with what to do about it."""
    stage = message.partition(":")[0]
    if stage == "mount namespace" and os.geteuid() == 0:
        hint = ROOT_HINT
    elif stage in ("namespaces", "identity"):
        hint = user_namespace_hint()
    else:
        hint = mount_hint() or "`hotbed doctor` tries each thing that isolation needs and says which this host refuses"
    return IsolationUnavailable(f"a template could not be isolated: {message}", hint=hint)


def user_namespace_hint() -> str:
    """What keeps this user from making user namespaces, as far as the host says."""
    if _read(_APPARMOR) == "1":
        return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu's AppArmor refuses them)"
    if _read(_CLONE_SYSCTL) == "0":
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _read(_MOST_USER_NAMESPACES) == "0":
        return "sudo sysctl -w user.max_user_namespaces=15000"
    return mount_hint() or "the host refuses them; ask who runs it, or run the node as root"


def in_container() -> bool:
    """Whether Docker or Podman says that this is one of theirs."""
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")


def cgroup_hint() -> str:
    """How limits can hold the sum of a sandbox's processes."""
    if in_container():
        return "a container's are read-only: what it was started with (--memory) holds all of its sandboxes together"
    return "systemd-run --user --scope -p Delegate=yes hotbed node, or run as root"


def mount_hint() -> str | None:
    """In a container, the flags it must be started with."""
    if in_container():
        return (
            "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined "
            "--security-opt apparmor=unconfined"
        )
    return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
