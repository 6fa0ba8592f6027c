"""How a newborn fork of a template shuts itself in. The order is the security argument.

1. *Limits first*: it joins its cgroups before it touches memory of its own.
2. *Namespaces*: a leased network namespace, then fresh mount, IPC, UTS and cgroup namespaces (its pid namespace was
   made by the template, so it is pid 1 already). The cgroup namespace comes after the cgroups are joined, so that its
   root is the sandbox's own group.
3. *Files*: an overlay of the skeleton on a tmpfs with a quota; the read-only trees of the template are attached; fresh
   proc with a read-only /proc/sys (network settings belong to the namespace's owner, capability or not); fresh devpts;
   the whole is moved onto the root and entered. The template's tree stays mounted below, where no name leads: there is
   no descriptor of it, and no capability to unmount or to leave a root. (pivot_root and an unmount would wait for RCU.)
4. *Identity*: a last user namespace that maps only 0. The sandbox then owns none of its namespaces, and RLIMIT_NPROC
   counts its processes alone (ucounts are kept per user namespace).
5. *Rights*: no capability in any set (a new user namespace brings even the bounding set back; no_new_privs is the
   template's), non-dumpable, and the last filter, which forbids the calls above.

Any stage that fails raises; the caller reports it and exits. Nothing ever runs with less.
"""

from __future__ import annotations

import os
import resource
import socket
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import frames, kernel
from . import filters, layers

SKELETON = "/.hotbed/skel"
SCRATCH = layers.SCRATCH
PROC_SYS = "/.hotbed/procsys"
NEW_ROOT = "/.hotbed/new"

_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_ATTACH = kernel.MS_BIND | kernel.MS_REC
_PROC_FLAGS = _QUIET | kernel.MS_NOEXEC
_FILTER = kernel.Filter(filters.sandbox_filter())
_OVERLAY = "lowerdir={lowers},upperdir=" + f"{SCRATCH}/u,workdir={SCRATCH}/w,userxattr"
_MIB = 1 << 20
_ROOM = 8


class Failed(Exception):
    """One stage of isolation did not work."""


class Isolator:
    """Isolates forks of one template. `attached` are the trees of the template's root that sandboxes see, read-only.

    `lowers` are an image's layers, the highest first, which every sandbox has below the skeleton; `over` are a setup's,
    which it has above.
    """

    def __init__(self, attached: Sequence[str], lowers: Sequence[str] = (), over: Sequence[str] = ()) -> None:
        self.stage = "start"
        self.upper = -1  # the folder of the file layer, for a sandbox that will be asked for it
        self._attached = [(os.fsencode(path), os.fsencode(NEW_ROOT + path)) for path in attached]
        self._lowers = ":".join([*over, SKELETON, *lowers])
        self._overlay = _OVERLAY.format(lowers=self._lowers).encode()
        self._scratch = os.fsencode(SCRATCH)
        self._new_root = os.fsencode(NEW_ROOT)
        self._proc = os.fsencode(NEW_ROOT + "/proc")
        self._proc_sys = (os.fsencode(PROC_SYS), os.fsencode(NEW_ROOT + "/proc/sys"))
        self._pts = os.fsencode(NEW_ROOT + "/dev/pts")

    def enter(self, box: Dict[str, Any], network: int, cgroups: Sequence[int], ground: int = -1) -> None:
        """Shut the calling process in. `ground` is the namespace of the layers that it stands on, if it does on any.

        Raises `Failed` with the stage that did not work.
        """
        try:
            if ground >= 0:
                self._stand_on(ground, box["depth"])
            self._join(network, cgroups)
            self._mount(box["limits"])
            if box.get("layer"):
                self.upper = os.open(SCRATCH + "/u", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._move_root()
            self._name(box["hostname"])
            self._become_nobody()
            self._limit(box)
            self._give_up_rights()
        except (OSError, ValueError, OverflowError) as error:
            raise Failed(f"{self.stage}: {error}") from None

    def rehearse(self, box: Dict[str, Any], network: int) -> None:
        """The part of `enter` that can be undone by going back to the namespaces one came from."""
        self._join(network, ())
        self._mount(box["limits"])
        self._move_root()
        self._name(box["hostname"])
        self._limit(box)

    def _stand_on(self, ground: int, depth: int) -> None:
        self.stage = "layers"
        kernel.setns(ground, kernel.CLONE_NEWNS)
        self._overlay = _OVERLAY.format(lowers=layers.lower(depth, self._lowers)).encode()

    def _join(self, network: int, cgroups: Sequence[int]) -> None:
        self.stage = "cgroup"
        for fd in cgroups:
            os.write(fd, b"0")
        self.stage = "namespaces"
        kernel.setns(network, kernel.CLONE_NEWNET)
        kernel.unshare(_NAMESPACES)

    def _mount(self, limits: Dict[str, Any]) -> None:
        self.stage = "tmpfs"
        quota = f"size={limits['disk_mib'] * _MIB},nr_inodes={limits['files']},mode=755"
        kernel.mount(b"tmpfs", self._scratch, b"tmpfs", _QUIET, quota.encode())
        os.mkdir(SCRATCH + "/u", 0o755)
        os.mkdir(SCRATCH + "/w", 0o755)
        self.stage = "overlay"
        kernel.mount(b"overlay", self._new_root, b"overlay", _QUIET, self._overlay)
        self.stage = "attach"
        for source, target in self._attached:
            kernel.mount(source, target, None, _ATTACH, None)
        self.stage = "devpts"
        kernel.mount(b"devpts", self._pts, b"devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, b"newinstance,ptmxmode=0666")
        self.stage = "proc"
        kernel.mount(b"proc", self._proc, b"proc", _PROC_FLAGS, None)
        kernel.mount(self._proc_sys[0], self._proc_sys[1], None, kernel.MS_BIND, None)

    def _move_root(self) -> None:
        self.stage = "root"
        os.chdir(NEW_ROOT)
        kernel.mount(b".", b"/", None, kernel.MS_MOVE, None)
        os.chroot(".")

    def _name(self, hostname: str) -> None:
        self.stage = "hostname"
        kernel.call(filters.USED_BY_ISOLATION["sethostname"], hostname.encode(), len(hostname))

    def _limit(self, box: Dict[str, Any]) -> None:
        """After the user namespace is made, for two reasons.

        A namespace hands the RLIMIT_NPROC of its maker up: it would hold all sandboxes of the template together
        (kernel/ucount.c, is_rlimit_overlimit). And a fork still holds what its template has open, which may be more
        than a sandbox may open.
        """
        self.stage = "limits"
        for kind, value in rlimits(box):
            resource.setrlimit(kind, (value, value))

    def _become_nobody(self) -> None:
        self.stage = "user namespace"
        kernel.unshare(kernel.CLONE_NEWUSER)
        _write("/proc/self/setgroups", b"deny")
        _write("/proc/self/uid_map", b"0 0 1")
        _write("/proc/self/gid_map", b"0 0 1")

    def _give_up_rights(self) -> None:
        self.stage = "rights"
        kernel.empty_bounding_set()
        kernel.drop_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        _FILTER.install()
        self.stage = "done"


def tell(agent: int, reason: Optional[BaseException], message: str) -> None:
    """Let the node know, on the sandbox's own socket, that there will be no sandbox; `busy` if that may pass."""
    code = "busy" if isinstance(reason, BlockingIOError) else "isolation_failed"
    try:
        with socket.socket(fileno=os.dup(agent)) as sock:
            frames.send(sock, {"op": "error", "code": code, "message": message})
    except (frames.Closed, OSError):
        pass  # it hears of the end all the same


def rlimits(box: Dict[str, Any]) -> List[Tuple[int, int]]:
    """The resource limits of a sandbox.

    Where a cgroup counts processes it must be the one to refuse, for it also counts its refusals: that is how a program
    that ran into the limit is told from one that failed. Where there is no memory cgroup, RLIMIT_DATA stands in, and
    RLIMIT_FSIZE for what no process's memory shows: a file of memfd_create is on no disk with a quota.
    """
    limits = box["limits"]
    room = _ROOM if "pids" in box.get("events", ()) else 0
    found = [
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["pids"] + room),
        (resource.RLIMIT_CORE, 0),
    ]
    if box.get("limit_data"):
        size = limits["memory_mib"] * _MIB
        found += [(resource.RLIMIT_DATA, size), (resource.RLIMIT_FSIZE, size)]
    return found


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
