"""Layers: what a sandbox changed up to one moment, as a read-only tree that any number of new sandboxes stand on.

A layer is a mount namespace that no process is in: a descriptor of it, held by the node, keeps it. In it the template's
tree is mounted as in every sandbox, and the layer, a tmpfs of its own, at `place(depth)`; below that are the layers
that the sandbox stood on itself. A new sandbox enters this namespace before it unshares one of its own, so it has the
whole pile in its copy of the table, and overlays it. That needs no more rights than isolation does: all these
namespaces are of the template's user namespace. When the last descriptor is closed and the last sandbox has ended, the
kernel frees the memory; nothing can be left behind.

A *holder* makes it: a fork of the template that enters the sandbox's mount namespace, copies that, takes the sandbox's
root off the copy, and finds the sandbox's own tmpfs where isolation has put it. That one becomes the layer as it is if
the sandbox is to end (`restack`: it must not run again), else its content is copied while the sandbox is frozen.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Dict, NoReturn, Sequence

from .. import frames, kernel
from . import filters
from .treecopy import TreeCopy

LAYERS = "/.hotbed/layers"
SCRATCH = "/.hotbed/scratch"
MOST = 80  # one on the other: with an image's, their names must fit into the options of one mount(2), a page
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_SOCKET = 3
_MIB = 1 << 20
_NEEDED = (1 << 1) | (1 << 2) | (1 << 3)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER: modes are a sandbox's own


def place(depth: int) -> str:
    """Where the layer with so many below it, itself counted, is mounted."""
    return f"{LAYERS}/{depth}"


def lower(depth: int, skeleton: str) -> str:
    """The lower folders of an overlay that stands on so many layers, the newest first."""
    return ":".join([*(f"{place(number)}/u" for number in range(depth, 0, -1)), skeleton])


def become_holder(order: Dict[str, Any], pid: int, fds: Sequence[int]) -> NoReturn:
    """In a fork of the template: make a layer of the sandbox with this pid 1, hand over its namespace, and exit.

    The descriptors are the socket to answer on, and files of the groups that the copy is counted in.
    """
    try:
        for group in fds[1:]:
            os.write(group, b"0")
        os.dup2(fds[0], _SOCKET)
        kernel.close_from(_SOCKET + 1)
        with socket.socket(fileno=_SOCKET) as node:
            _serve(order, pid, node)
    finally:
        os._exit(0)


def _serve(order: Dict[str, Any], pid: int, node: socket.socket) -> None:
    try:
        namespace = enter(pid)
        told = restack(order) if order["restack"] else copy(order)
        frames.send(node, {"op": "held", **told}, b"", [namespace])
    except (OSError, ValueError) as error:
        frames.send(node, {"op": "error", "code": "failed", "message": f"no layer could be made: {error}"[:1000]})


def enter(pid: int) -> int:
    """Be in a copy of a sandbox's mount namespace, without the sandbox's root; a descriptor of the copy."""
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    theirs = os.open(f"{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    kernel.setns(theirs, kernel.CLONE_NEWNS)
    kernel.unshare(kernel.CLONE_NEWNS)
    own = os.open("self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    os.close(theirs)
    os.close(proc)
    kernel.umount(b"/")
    kernel.setns(own, kernel.CLONE_NEWNS)  # which makes the tree that was below the root
    os.chdir("/")
    return own


def restack(order: Dict[str, Any]) -> Dict[str, int]:
    """Make the sandbox's tmpfs the layer."""
    target = place(order["depth"])
    kernel.mount(os.fsencode(SCRATCH), os.fsencode(target), None, kernel.MS_MOVE, None)
    return {"files": 0, "bytes": _used(target)}


def copy(order: Dict[str, Any]) -> Dict[str, int]:
    """Make a tmpfs of the same quota the layer, with what is in the sandbox's."""
    target = place(order["depth"])
    quota = f"size={order['disk_mib'] * _MIB},nr_inodes={order['files']},mode=755"
    kernel.mount(b"tmpfs", os.fsencode(target), b"tmpfs", _QUIET, quota.encode())
    os.mkdir(target + "/u", 0o755)
    folders = [os.open(path + "/u", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in (SCRATCH, target)]
    kernel.umount(os.fsencode(SCRATCH))
    _give_up_rights()
    work = TreeCopy(*folders)
    work.run()
    return {"files": work.files, "bytes": _used(target)}


def _give_up_rights() -> None:
    """Before anything of the sandbox's is read: no more mounting, and no right but over the modes of its files."""
    kernel.keep_capabilities(_NEEDED)
    kernel.Filter(filters.sandbox_filter()).install()


def _used(path: str) -> int:
    about = os.statvfs(path)
    return (about.f_blocks - about.f_bfree) * about.f_bsize
