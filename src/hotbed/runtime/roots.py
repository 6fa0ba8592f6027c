"""Building the root filesystem of a template, and in it the skeleton that every sandbox's overlay starts from.

The tree is put together on a private tmpfs by whoever may read the host's directories (as root: before the user
namespace, so that an interpreter below a home of mode 0700 can still be shown), and finished by the template's own
process, whose pid namespace its proc must belong to. Files are copied only if everyone on the host may read them.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotbed.guest.template import isolate, layers
from hotbed.runtime import loadercache
from hotbed.runtime.linux import mounts
from hotbed.runtime.linux.identity import Ids

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = (
    ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"), ("ptmx", "pts/ptmx"), ("shm", "/run/shm"),
)  # fmt: skip
_OPEN_DIRS = ("tmp", "var/tmp", "run/shm", "run/lock")
_PLAIN_DIRS = (
    "etc",
    "work",
    "workspace",
    "root",
    "home",
    "mnt",
    "srv",
    "proc",
    "sys",
    "var/log",
    "var/lib",
    "var/cache",
)
OVER = "/.hotbed/o"
_LIBRARY = re.compile(r"lib.+\.so(\.[0-9.]+)?")
_COPY_LIMIT = 4 << 20
_MACHINE_ID = "686f74626564" + "0" * 20
ETC_TEXTS = {
    "passwd": "root:x:0:0:root:/work:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "resolv.conf": "nameserver 127.0.0.1\n",  # nobody, or the egress broker
    "shells": "/bin/sh\n/bin/bash\n",
    "fstab": "",
    "machine-id": _MACHINE_ID + "\n",
}


def assemble(plan: dict[str, Any], root: str, owner: Ids | None) -> None:
    """Put the tree together at an empty directory, in a private mount namespace. `owner` will own the skeleton."""
    assemble_host(plan, root)
    show_over(plan, root)
    _skeleton(plan, root + isolate.SKELETON)
    path = plan["env"].get("LD_LIBRARY_PATH")
    if path and path == plan.get("library_path") and _find_by_cache(path, root, plan.get("over", ())):
        del plan["env"]["LD_LIBRARY_PATH"]
    if owner is not None:
        give_to(root + isolate.SKELETON, owner)


def assemble_host(plan: dict[str, Any], root: str) -> None:
    """The host's own part: what the template's interpreter needs to run."""
    mounts.tmpfs(root, "size=256m,mode=755")
    for path in ("dev", "proc", "opt", "tmp"):
        directory(root, path)
    hotbed_directories(root)
    os.chmod(root + "/tmp", 0o1777)
    for path, target in plan["links"]:
        os.symlink(target, root + path)
    os.symlink(isolate.SKELETON[1:] + "/etc", root + "/etc")
    for source, target in [*plan["trees"], *plan["packages"], plan["guest"]]:
        show(root, source, target)
    _name_the_interpreter(root, plan["executable"])
    devices(root + "/dev")


def _find_by_cache(path: str, root: str, over: Sequence[str]) -> bool:
    """Let the loader find the libraries of a folder without being told by a variable; whether it will."""
    etc = root + isolate.SKELETON + "/etc"
    try:
        names = sorted(name for name in os.listdir(root + path) if _LIBRARY.fullmatch(name))
        cache = loadercache.with_libraries(
            Path(etc, "ld.so.cache").read_bytes(), {name: f"{path}/{name}" for name in names}
        )
    except FileNotFoundError:
        return False
    if cache is None or any(os.path.lexists(f"{layer}/etc/ld.so.cache") for layer in over):
        return False
    Path(etc, "ld.so.cache").write_bytes(cache)
    os.makedirs(etc + "/ld.so.conf.d", exist_ok=True)
    Path(etc, "ld.so.conf.d", "hotbed.conf").write_text(path + "\n")  # for who makes the cache anew
    return True


def show_over(plan: dict[str, Any], root: str) -> None:
    """The layers that a template's setup made."""
    for number, layer in enumerate(plan.get("over", ())):
        show(root, layer, f"{OVER}/{number}")


def hotbed_directories(root: str) -> None:
    """Where a template mounts what its forks are made of."""
    places = [layers.place(depth) for depth in range(1, layers.MOST + 1)]
    for path in (isolate.SKELETON, isolate.PROC_SYS, isolate.SCRATCH, isolate.NEW_ROOT, *places):
        directory(root, path)


def finish(root: str) -> None:
    """The template's own part, as pid 1 of its namespace: its proc, and its root."""
    mounts.bind(root, root)  # what came along into a user namespace is locked; a copy of it is not
    mounts.proc(root + "/proc")
    mounts.bind(root + "/proc/sys", root + isolate.PROC_SYS)
    mounts.set_attributes(root + isolate.PROC_SYS, 1 | 2 | 4 | 8, recursive=True)
    mounts.enter_root(root)


def attached(plan: dict[str, Any]) -> list[str]:
    """The trees of the template's root that its sandboxes see."""
    own = [target for _, target in plan["trees"] if not target.startswith("/opt/")]
    return [*own, "/opt", "/dev"]


def directory(root: str, path: str, mode: int = 0o755) -> None:
    """A directory of the tree, with all above it."""
    full = os.path.join(root, path.lstrip("/"))
    os.makedirs(full, mode=0o755, exist_ok=True)
    os.chmod(full, mode)


def show(root: str, source: str, target: str) -> None:
    """One tree or file of the host, read-only, at its place."""
    if os.path.isdir(source):
        directory(root, target)
    else:
        directory(root, os.path.dirname(target))
        Path(root + target).touch()
    mounts.bind(source, root + target)
    mounts.seal(root + target)


def _name_the_interpreter(root: str, executable: str) -> None:
    """`python` and `python3` must both resolve; an interpreter of /usr gets its names in /opt/python/bin."""
    if executable.startswith("/opt/"):
        return
    directory(root, "opt/python/bin")
    for name in ("python", "python3"):
        os.symlink(executable, f"{root}/opt/python/bin/{name}")


def devices(path: str) -> None:
    """Six device files of the host and the usual links. Making nodes is refused in a user namespace; binding is not."""
    mounts.tmpfs(path, "size=64k,mode=755", flags=2)  # nosuid; it must not be nodev
    for name in _DEVICES:
        Path(path, name).touch()
        mounts.bind_file("/dev/" + name, f"{path}/{name}")
    os.mkdir(path + "/pts")
    for name, target in _DEVICE_LINKS:
        os.symlink(target, f"{path}/{name}")
    mounts.make_read_only(path)


def _skeleton(plan: dict[str, Any], skeleton: str) -> None:
    for name in _PLAIN_DIRS:
        directory(skeleton, name)
    for name in _OPEN_DIRS:
        directory(skeleton, name, 0o1777)
    for target in attached(plan):
        directory(skeleton, target)
    for path, target in plan["links"]:
        os.symlink(target, skeleton + path)
    for name, text in ETC_TEXTS.items():
        Path(skeleton, "etc", name).write_text(text)
    for name in plan["etc"]:
        _copy("/etc/" + name, f"{skeleton}/etc/{name}")
    os.symlink("/proc/self/mounts", skeleton + "/etc/mtab")


def give_to(top: str, ids: Ids) -> None:
    """An overlay can copy up only files whose owner is mapped (EOVERFLOW otherwise)."""
    for path, directories, files in os.walk(top):
        for name in (*directories, *files):
            os.lchown(os.path.join(path, name), ids.uid, ids.gid)
    os.lchown(top, ids.uid, ids.gid)


def _copy(source: str, target: str) -> None:
    """Copy what everyone may read: links as links, small files, trees of both."""
    try:
        info = os.lstat(source)
        if os.path.lexists(target):
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(source), target)
        elif stat.S_ISDIR(info.st_mode) and info.st_mode & 0o005 == 0o005:
            os.makedirs(target, exist_ok=True)
            for name in os.listdir(source):
                _copy(f"{source}/{name}", f"{target}/{name}")
        elif stat.S_ISREG(info.st_mode) and info.st_mode & 0o004 and info.st_size <= _COPY_LIMIT:
            shutil.copyfile(source, target)
            os.chmod(target, stat.S_IMODE(info.st_mode) & 0o755)
    except (FileNotFoundError, PermissionError):
        return
