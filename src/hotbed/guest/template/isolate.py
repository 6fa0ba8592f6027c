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

Any step that fails raises; the caller reports its stage and exits. Nothing ever runs with less.

All of it is `Isolator.steps`, a list that is made first and then taken by one loop: a fork copies each page that it is
the first to write to, so it calls few functions, and those that all steps share.
"""

from __future__ import annotations

import os
import resource
import socket
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from .. import frames, kernel
from . import filters, layers

SKELETON = "/.hotbed/skel"
SCRATCH = layers.SCRATCH
PROC_SYS = "/.hotbed/procsys"
NEW_ROOT = "/.hotbed/new"

#: A stage, a function, and its arguments. It has failed if it raises, or gives -1, as `kernel.bare` does.
Step = Tuple[str, Callable[..., Any], Tuple[Any, ...]]
Steps = Sequence[Sequence[Step]]
#: Of a box: its host name, the options of its tmpfs, its resource limits, how many layers it stands on, and whether it
#: will be asked for its own. By place: each name would be one more page.
Shape = Tuple[str, str, Sequence[Tuple[int, int]], int, bool]

_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_ATTACH = kernel.MS_BIND | kernel.MS_REC
_SCRATCH, _NEW_ROOT, _TMPFS = os.fsencode(SCRATCH), os.fsencode(NEW_ROOT), b"tmpfs"
_FILTER = kernel.Filter(filters.sandbox_filter())
_OVERLAY = "lowerdir={lowers},upperdir=" + f"{SCRATCH}/u,workdir={SCRATCH}/w,userxattr"
_MIB = 1 << 20
_ROOM = 8
_PTMX = b"newinstance,ptmxmode=0666"
_FOR_GOOD = ("user namespace", "rights", "descriptors")  # the stages that nothing undoes

_call = kernel.bare
_setrlimit = resource.setrlimit
_WRITE, _SETNS, _MOUNT, _SETHOSTNAME = kernel.NR_WRITE, kernel.NR_SETNS, kernel.NR_MOUNT, kernel.NR_SETHOSTNAME
_OPEN, _WRITE_ONLY, _CLOSE, _NEWNET = kernel.NR_OPEN, os.O_WRONLY, kernel.NR_CLOSE, kernel.CLONE_NEWNET


class Failed(Exception):
    """One stage of isolation did not work."""


def take(steps: Steps) -> None:
    """Take the steps. Raises `Failed` with the stage of the one that did not work."""
    step: Step = _FRESH_NAMESPACES
    try:
        for group in steps:
            for step in group:  # its stage is not looked at: that would be one more page
                if step[1](*step[2]) == -1:
                    raise kernel.failure()
    except (OSError, ValueError, OverflowError) as error:
        raise Failed(f"{step[0]}: {error}") from None


def harmless(steps: Steps) -> Steps:
    """Those that can be undone by going back to the namespaces one came from."""
    return [[step for step in group if step[0] not in _FOR_GOOD] for group in steps]


def _mounted(stage: str, source: str, target: str, kind: Optional[bytes], flags: int, data: Any = None) -> Step:
    place = _NEW_ROOT if target == NEW_ROOT else os.fsencode(target)
    return (stage, _call, (_MOUNT, kind or os.fsencode(source), place, kind, flags, data))


def fill(path: bytes, data: bytes) -> int:
    """Write a file of the kernel's. What it leaves open when it fails goes with the process."""
    fd = _call(_OPEN, path, _WRITE_ONLY)
    if fd == -1 or _call(_WRITE, fd, data, len(data)) == -1:
        return -1
    closed: int = _call(_CLOSE, fd)
    return closed


_FRESH_NAMESPACES: Step = ("namespaces", _call, (kernel.NR_UNSHARE, _NAMESPACES))
_FOLDERS: List[Step] = [
    ("tmpfs", _call, (kernel.NR_MKDIR, _SCRATCH + b"/u", 0o755)),
    ("tmpfs", _call, (kernel.NR_MKDIR, _SCRATCH + b"/w", 0o755)),
]
_KERNEL_FILES: List[Step] = [
    _mounted("devpts", "devpts", NEW_ROOT + "/dev/pts", b"devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, _PTMX),
    _mounted("proc", "proc", NEW_ROOT + "/proc", b"proc", _QUIET | kernel.MS_NOEXEC),
    _mounted("proc", PROC_SYS, NEW_ROOT + "/proc/sys", None, kernel.MS_BIND),
]
_ROOT: List[Step] = [
    ("root", _call, (kernel.NR_CHDIR, _NEW_ROOT)),
    _mounted("root", ".", "/", None, kernel.MS_MOVE),
    ("root", _call, (kernel.NR_CHROOT, b".")),
]
_NOBODY: List[Step] = [
    ("user namespace", _call, (kernel.NR_UNSHARE, kernel.CLONE_NEWUSER)),
    ("user namespace", fill, (b"/proc/self/setgroups", b"deny")),
    ("user namespace", fill, (b"/proc/self/uid_map", b"0 0 1")),
    ("user namespace", fill, (b"/proc/self/gid_map", b"0 0 1")),
]
_NO_RIGHTS: List[Step] = [
    *[("rights", _call, (kernel.NR_PRCTL, kernel.PR_CAPBSET_DROP, each)) for each in kernel.CAPABILITIES],
    ("rights", _call, (kernel.NR_CAPSET, kernel.CAP_HEADER, kernel.CAP_NONE)),
    ("rights", _call, (kernel.NR_PRCTL, kernel.PR_SET_DUMPABLE, 0)),
    ("rights", _call, _FILTER.words),
]


class Isolator:
    """Isolates forks of one template. `attached` are the trees of the template's root that sandboxes see, read-only.

    `lowers` are an image's layers, the highest first, which every sandbox has below the skeleton; `over` are a setup's,
    which it has above.
    """

    def __init__(self, attached: Sequence[str], lowers: Sequence[str] = (), over: Sequence[str] = ()) -> None:
        self.upper = -1  # the folder of the file layer, for a sandbox that will be asked for it
        self._attach = [_mounted("attach", path, NEW_ROOT + path, None, _ATTACH) for path in attached]
        self._lowers = ":".join([*over, SKELETON, *lowers])
        self._files = self._overlaid(self._lowers)

    def steps(self, shape: Shape, network: int, cgroups: Sequence[int], ground: int = -1) -> Steps:
        """The whole of it, in its order, in groups.

        `ground` is the namespace of the layers that it stands on, if it does on any. The limits come after the user
        namespace is made, for two reasons. A namespace hands the RLIMIT_NPROC of its maker up: it would hold all
        sandboxes of the template together (kernel/ucount.c, is_rlimit_overlimit). And a fork still holds what its
        template has open, which may be more than a sandbox may open.
        """
        hostname, quota, limits, depth, layer = shape
        name = hostname.encode()
        joined: List[Step] = []
        for fd in cgroups:  # no comprehension, which would be a function of its own before Python 3.12
            joined.append(("cgroup", _call, (_WRITE, fd, b"0", 1)))
        limited: List[Step] = []
        for kind, value in limits:
            limited.append(("limits", _setrlimit, (kind, (value, value))))
        return [
            self._ground(ground) if ground >= 0 else (),
            joined,
            (("namespaces", _call, (_SETNS, network, _NEWNET)), _FRESH_NAMESPACES),
            (("tmpfs", _call, (_MOUNT, _TMPFS, _SCRATCH, _TMPFS, _QUIET, quota.encode())),),
            self._overlaid(layers.lower(depth, self._lowers)) if ground >= 0 else self._files,
            self._kept() if layer else (),
            _ROOT,
            (("hostname", _call, (_SETHOSTNAME, name, len(name))),),
            _NOBODY,
            limited,
            _NO_RIGHTS,
        ]

    def _ground(self, ground: int) -> List[Step]:
        return [("layers", _call, (_SETNS, ground, kernel.CLONE_NEWNS))]

    def _overlaid(self, lowers: str) -> List[Step]:
        layered = os.fsencode(_OVERLAY.format(lowers=lowers))
        overlay = _mounted("overlay", "overlay", NEW_ROOT, b"overlay", _QUIET, layered)
        return [*_FOLDERS, overlay, *self._attach, *_KERNEL_FILES]

    def _kept(self) -> List[Step]:
        return [("layer", self._keep_upper, ())]

    def _keep_upper(self) -> None:
        self.upper = os.open(SCRATCH + "/u", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def tell(agent: int, reason: Optional[BaseException], message: str) -> None:
    """Let the node know, on the sandbox's own socket, that there will be no sandbox; `busy` if that may pass."""
    code = "busy" if isinstance(reason, BlockingIOError) else "isolation_failed"
    try:
        with socket.socket(fileno=os.dup(agent)) as sock:
            frames.send(sock, {"op": "error", "code": code, "message": message})
    except (frames.Closed, OSError):
        pass  # it hears of the end all the same


def shape(box: Mapping[str, Any]) -> Shape:
    """What `Isolator.steps` has to know of a box, worked out where that costs no fork a page: the node does it."""
    limits = box["limits"]
    quota = f"size={limits['disk_mib'] * _MIB},nr_inodes={limits['files']},mode=755"
    return box["hostname"], quota, rlimits(box), box.get("depth", 0), bool(box.get("layer"))


def rlimits(box: Mapping[str, Any]) -> List[Tuple[int, int]]:
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
