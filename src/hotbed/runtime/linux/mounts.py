"""Mounting on the host's side: private trees, read-only binds and the small filesystems of a template's root."""

from __future__ import annotations

import os
import struct

from hotbed.guest import kernel

NR_MOUNT_SETATTR = 442
AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4


def own_namespace() -> None:
    """What is mounted from here on goes with this process and those it starts."""
    kernel.unshare(kernel.CLONE_NEWNS)
    make_private()


def make_private() -> None:
    """Nothing mounted from here on is seen by any other mount namespace."""
    kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)


def tmpfs(target: str, options: str, flags: int = kernel.MS_NOSUID | kernel.MS_NODEV) -> None:
    """A tmpfs with a size."""
    kernel.mount(b"tmpfs", os.fsencode(target), b"tmpfs", flags, options.encode())


def bind(source: str, target: str) -> None:
    """The same tree at a second place, submounts included."""
    kernel.mount(os.fsencode(source), os.fsencode(target), None, kernel.MS_BIND | kernel.MS_REC, None)


def bind_file(source: str, target: str) -> None:
    """One file or device at a second place."""
    kernel.mount(os.fsencode(source), os.fsencode(target), None, kernel.MS_BIND, None)


def seal(target: str) -> None:
    """Make a mount and all below it read-only, without set-user-id programs and devices (Linux 5.12)."""
    set_attributes(target, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=True)


def make_read_only(target: str) -> None:
    """Make one mount read-only."""
    set_attributes(target, _ATTR_RDONLY, recursive=False)


def set_attributes(target: str, attributes: int, *, recursive: bool) -> None:
    """mount_setattr(2)."""
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)  # struct mount_attr
    flags = AT_RECURSIVE if recursive else 0
    kernel.call(NR_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, wanted, len(wanted))


def proc(target: str) -> None:
    """A proc of the calling process's pid namespace."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount(b"proc", os.fsencode(target), b"proc", flags, None)


def enter_root(new_root: str) -> None:
    """Make a mounted directory the root, and let the old tree go."""
    os.chdir(new_root)
    kernel.pivot_root(b".", b".")
    kernel.umount(b".")
    os.chdir("/")
