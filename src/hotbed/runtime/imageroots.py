"""Building the root filesystem of an image's template, and what sandboxes get over and under the image's layers.

The layers are mounted one by one at short names, read-only: an overlay is told of its lower folders in one page of text
(4096 bytes), and `/.hotbed/l/399` leaves room for more layers than there may be. Over them lies a small skeleton, which
every sandbox's overlay has on top of its lower folders: mount points, and a few files that are not the image's to say.
That the mount points are real folders of the skeleton is also what keeps an image from leading a mount elsewhere by a
link of that name: the upper entry hides the lower.

Where the image's own Python is the template, that one's root is an overlay of the layers too, with nothing to write to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotbed.guest import kernel
from hotbed.guest.template import isolate
from hotbed.runtime import roots
from hotbed.runtime.linux import beneath, mounts
from hotbed.runtime.linux.identity import Ids

LAYERS = "/.hotbed/l"
_MOUNT_POINTS = ("dev", "proc", "sys")
_IF_MISSING = {"work": 0o755, "workspace": 0o755, "root": 0o755, "tmp": 0o1777, "var": 0o755}
_OURS = ("hosts", "hostname", "resolv.conf", "machine-id")
_IF_NONE = ("passwd", "group")


def assemble(plan: dict[str, Any], root: str, owner: Ids | None) -> None:
    """Put the tree together at an empty directory, in a private mount namespace; `plan["enter"]` is then its top."""
    if plan["inside"]:
        top = _stack(plan, root)
        roots.hotbed_directories(top)
        roots.show(top, *plan["guest"])
        roots.devices(top + "/dev")
    else:
        top = root
        roots.assemble_host(plan, root)
    for source, target in plan["mounts"]:
        if not plan["inside"]:  # there the stack has the mount points
            roots.directory(top, target)
        mounts.bind(source, top + target)
        mounts.seal(top + target)
    for number, layer in enumerate(plan["layers"]):
        roots.show(top, layer, f"{LAYERS}/{number}")
    roots.show_over(plan, top)
    _skeleton(plan, top + isolate.SKELETON)
    if owner is not None:
        roots.give_to(top + isolate.SKELETON, owner)
    plan["enter"] = top


def _stack(plan: dict[str, Any], root: str) -> str:
    """An overlay of the layers below a frame of mount points."""
    mounts.tmpfs(root, "size=64m,mode=755")
    for path in (".hotbed", *_MOUNT_POINTS, *(target for _, target in plan["mounts"])):
        roots.directory(root + "/f", path)
    os.mkdir(root + "/r")
    names = ["f"]
    for number, layer in reversed(list(enumerate(plan["layers"]))):
        roots.show(root, layer, f"/l/{number}")
        names.append(f"l/{number}")
    os.chdir(root)  # so that the names are short
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_RDONLY
    kernel.mount(b"overlay", b"r", b"overlay", flags, f"lowerdir={':'.join(names)},userxattr".encode())
    os.chdir("/")
    mounts.tmpfs(root + "/r/.hotbed", "size=64m,mode=755")
    return root + "/r"


def _skeleton(plan: dict[str, Any], skeleton: str) -> None:
    """What lies over the image in every sandbox."""
    for name in _MOUNT_POINTS:
        roots.directory(skeleton, name)
    for name, mode in _IF_MISSING.items():
        if not _has(plan["layers"], name, folder=True):
            roots.directory(skeleton, name, mode)
    roots.directory(skeleton, "run/shm", 0o1777)
    for _, target in plan["mounts"]:
        roots.directory(skeleton, target)
    if not _has(plan["layers"], plan["workdir"], folder=True):
        roots.directory(skeleton, plan["workdir"])
    roots.directory(skeleton, "etc")
    for name in (*_OURS, *(name for name in _IF_NONE if not _has(plan["layers"], "etc/" + name))):
        Path(skeleton, "etc", name).write_text(roots.ETC_TEXTS[name])
    os.symlink("/proc/self/mounts", skeleton + "/etc/mtab")


def _has(layers: list[str], path: str, *, folder: bool = False) -> bool:
    """Whether the image has something, or a folder to be entered, at a path, as far as one layer alone can tell."""
    flags = os.O_PATH | os.O_CLOEXEC | (os.O_DIRECTORY if folder else os.O_NOFOLLOW)
    for layer in reversed(layers):
        top = os.open(layer, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fd = beneath.openat2(top, path.lstrip("/"), flags)
        except OSError:
            continue
        finally:
            os.close(top)
        try:
            return not beneath.is_whiteout(os.fstat(fd))
        finally:
            os.close(fd)
    return False
