"""A directory tree that is written to by names nobody has vetted: no name leads out of it.

Every folder is entered with openat2(2): links are followed inside the tree only, an absolute one from its top, and
`..` stops there. The last part of a name is never followed. What is made is made relative to a folder's descriptor,
so a folder that is moved or replaced meanwhile changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections import OrderedDict
from collections.abc import Callable

from hotbed.guest import kernel, steps

Parts = tuple[str, ...]

_NR_OPENAT2 = 437
_IN_ROOT = 0x10 | 0x02 | 0x01  # RESOLVE_IN_ROOT, _NO_MAGICLINKS, _NO_XDEV (include/uapi/linux/openat2.h)
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_PATH_MAX = 4095
_KEPT = 32
_AT_A_TIME = 100
_OPAQUE = "user.overlay.opaque"


class BadName(ValueError):
    """A name that cannot be in a tree: it leads out of it, or through something that is no folder."""


def split(name: str) -> Parts:
    """The parts of a name. Raises `BadName` for one that climbs, or that no file can have."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadName(f"{name[:200]!r} leads out of the image")
    if "\0" in name or len(os.fsencode(name)) > _PATH_MAX:
        raise BadName(f"{name[:80]!r} is no name that a file can have")
    return parts


def openat2(folder: int, path: str, flags: int, resolve: int = _IN_ROOT) -> int:
    """openat2(2), by default with `folder` as the root of everything the path could mean. Raises OSError."""
    how = struct.pack("QQQ", flags, 0, resolve)
    return kernel.call(_NR_OPENAT2, folder, os.fsencode(path), how, len(how))


class Tree:
    """Writes below one folder. Folders that a name needs are made, and told to `on_implicit`."""

    def __init__(self, root: int, on_implicit: Callable[[Parts], None] = lambda _: None) -> None:
        self.root = root
        self._on_implicit = on_implicit
        self._open: OrderedDict[Parts, int] = OrderedDict()

    def folder(self, parts: Parts) -> int:
        """A descriptor of the folder, which stays the tree's; made if it is missing. Raises `BadName`, OSError."""
        if not parts:
            return self.root
        fd = self._open.get(parts)
        if fd is not None:
            self._open.move_to_end(parts)
            return fd
        fd = self._enter(parts)
        self._open[parts] = fd
        if len(self._open) > _KEPT:
            os.close(self._open.popitem(last=False)[1])
        return fd

    def _enter(self, parts: Parts) -> int:
        for attempt in (1, 2):
            try:
                return openat2(self.root, "/".join(parts), _FOLDER)
            except OSError as error:
                if error.errno == errno.ENOENT and attempt == 1:
                    self._make(parts)
                elif error.errno == errno.ENOTDIR and attempt == 1 and self._is_whiteout(parts):
                    self.remove(parts)
                    self._make(parts)
                    self.set_opaque(parts)
                elif error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV):
                    raise BadName(f"{'/'.join(parts)[:200]!r} goes through something that is no folder") from None
                else:
                    raise
        raise AssertionError("unreachable")

    def _make(self, parts: Parts) -> None:
        self.folder(parts[: (len(parts) - 1) // _AT_A_TIME * _AT_A_TIME])  # so that depth is not one of recursion
        parent = self.folder(parts[:-1])
        try:
            os.mkdir(parts[-1], 0o755, dir_fd=parent)
        except FileExistsError:
            raise BadName(f"{'/'.join(parts)[:200]!r} goes through a link that leads nowhere") from None
        self._on_implicit(parts)

    def find(self, parts: Parts) -> os.stat_result | None:
        """What is at a name, links not followed; None if nothing is."""
        try:
            return os.stat(parts[-1], dir_fd=self.folder(parts[:-1]), follow_symlinks=False)
        except FileNotFoundError:
            return None

    def path(self, parts: Parts) -> str:
        """A path for calls that take no folder descriptor; good until the next call here."""
        base = f"/proc/self/fd/{self.folder(parts[:-1]) if parts else self.root}"
        return f"{base}/{parts[-1]}" if parts else base + "/."

    def white_out(self, parts: Parts) -> None:
        """Hide what lower layers have at a name (Documentation/filesystems/overlayfs.rst)."""
        os.mknod(parts[-1], stat.S_IFCHR, os.makedev(0, 0), dir_fd=self.folder(parts[:-1]))

    def set_opaque(self, parts: Parts) -> None:
        """Hide what lower layers have in a folder."""
        os.setxattr(self.path(parts), _OPAQUE, b"y", follow_symlinks=False)

    def _is_whiteout(self, parts: Parts) -> bool:
        try:
            found = self.find(parts)
        except BadName:
            return False
        return found is not None and is_whiteout(found)

    def remove(self, parts: Parts) -> None:
        """Remove what is at a name, a folder with all that is in it."""
        self._forget()
        _remove(self.folder(parts[:-1]), parts[-1])

    def _forget(self) -> None:
        """What is open may be about to go."""
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def close(self) -> None:
        """Let go of every folder but the root, which is the caller's."""
        self._forget()


def is_whiteout(found: os.stat_result) -> bool:
    """Whether an entry of a layer hides one of a lower layer."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def empty(folder: int) -> None:
    """Remove all that is in a folder, however deep, whatever its modes; links are not followed. Has one folder open."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    above: list[tuple[os.stat_result, str]] = []
    try:
        while True:
            inner = _first_kept(here)
            if inner is not None:
                os.chmod(inner, 0o700, dir_fd=here)
                above.append((os.fstat(here), inner))
                here = steps.to(here, inner)
                continue
            if not above:
                return
            info, name = above.pop()
            here = steps.up(here, info)
            os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)


def _first_kept(folder: int) -> str | None:
    """Unlink what can be; the first folder that has to be emptied before it can go."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            try:
                os.rmdir(entry.name, dir_fd=folder)
            except OSError:
                return entry.name
    return None


def _remove(folder: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    os.chmod(name, 0o700, dir_fd=folder)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        empty(inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
