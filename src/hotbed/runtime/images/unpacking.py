"""One layer's tar becomes a folder that an overlay can use as a lower one.

The names, links, sizes and attributes are whoever made the image's, so nothing of them is trusted: see `beneath` for
where a name may lead. Whoever runs this is an unprivileged user, and everything it makes is that user's: the one that
is 0 inside a sandbox. Left out, and counted in the report: device nodes, set-user-id bits, capabilities and other
attributes that are not `user.*`, and those by which an overlay steers itself (with them an image could show one file
in another's place). The rest is as the image says, times and modes of folders last.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hotbed.runtime.images.streams import BLOCK, BadBlob, Forward, TooMuch
from hotbed.runtime.linux.beneath import BadName, Parts, Tree, is_whiteout, split

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_METADATA = ".wh..wh."  # aufs kept its own files under such names
_XATTR = "SCHILY.xattr."
_STEERING = ("user.overlay.", "user.fuseoverlayfs.")
_NO_ATTRIBUTE = (errno.ENOSPC, errno.E2BIG, errno.ENOTSUP)
_TOP_SECOND = (1 << 33) - 1
_EVERY = 256

ENTRIES_LIMIT = 3_000_000
BYTES_LIMIT = 64 << 30


@dataclass(slots=True, kw_only=True)
class Report:
    """What a layer held. `implicit` are folders that it needs and does not describe."""

    entries: int = 0
    size: int = 0
    implicit: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


class Unpacker:
    """Puts entries into one folder, in the order of the tar."""

    def __init__(self, root: int, *, entries: int = ENTRIES_LIMIT) -> None:
        self.report = Report()
        self._most = entries
        self._tree = Tree(root, self._note_implicit)
        self._implicit: set[str] = set()
        self._folders: dict[Parts, tuple[int, int, int]] = {}  # mode, time and inode: set when nothing more is put in

    def _note_implicit(self, parts: Parts) -> None:
        self._implicit.add("/".join(parts))

    def add(self, entry: tarfile.TarInfo, content: Forward) -> None:
        """One entry. Raises `BadName`, `BadBlob`, `TooMuch`, OSError."""
        self.report.entries += 1
        if self.report.entries > self._most:
            raise TooMuch(f"it has more than {self._most} entries")
        parts = split(entry.name)
        if parts and parts[-1].startswith(_WHITEOUT):
            self._hide(parts)
        elif entry.isdir():
            self._folder(parts, entry)
        elif not parts:
            raise BadName("the top of the image is no folder")
        elif entry.isreg():
            self._file(parts, entry, content)
        else:
            self._other(parts, entry)

    def _hide(self, parts: Parts) -> None:
        if parts[-1] == _OPAQUE:
            self._tree.folder(parts[:-1])
            self._tree.set_opaque(parts[:-1])
            return
        if parts[-1].startswith(_METADATA):
            self.report.skipped["aufs metadata"] += 1
            return
        target = (*parts[:-1], parts[-1][len(_WHITEOUT) :])
        if target[-1] in ("", ".", ".."):
            raise BadName(f"{parts[-1]!r} hides nothing that has a name")
        found = self._tree.find(target)
        if found is None:
            self._tree.white_out(target)
        elif stat.S_ISDIR(found.st_mode):
            self._tree.set_opaque(target)

    def _folder(self, parts: Parts, entry: tarfile.TarInfo) -> None:
        if parts:
            found = self._tree.find(parts)
            if found is None or not stat.S_ISDIR(found.st_mode):
                hidden = found is not None and is_whiteout(found)
                if found is not None:
                    self._remove(parts)
                os.mkdir(parts[-1], 0o700, dir_fd=self._tree.folder(parts[:-1]))
                if hidden:
                    self._tree.set_opaque(parts)
        inode = os.stat(self._tree.path(parts), follow_symlinks=False).st_ino
        self._folders[parts] = (entry.mode & 0o1777, _time_of(entry), inode)
        self._implicit.discard("/".join(parts))
        self._attributes(parts, entry)
        self._count_rights(entry)

    def _file(self, parts: Parts, entry: tarfile.TarInfo, content: Forward) -> None:
        fd = self._create(parts)
        try:
            content.seek(entry.offset_data)
            if entry.issparse():
                self.report.size += _fill_sparse(fd, entry, content)
            else:
                self.report.size += _fill(fd, entry.size, content)
            os.fchmod(fd, entry.mode & 0o1777)
            self._attributes(parts, entry)
            os.utime(fd, ns=(_time_of(entry),) * 2)
        finally:
            os.close(fd)
        self._count_rights(entry)

    def _create(self, parts: Parts) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(parts[-1], flags, 0o600, dir_fd=self._tree.folder(parts[:-1]))
        except FileExistsError:
            self._remove(parts)
            return os.open(parts[-1], flags, 0o600, dir_fd=self._tree.folder(parts[:-1]))

    def _other(self, parts: Parts, entry: tarfile.TarInfo) -> None:
        """A link, a pipe; devices are left out."""
        if entry.isdev() and not entry.isfifo():
            self.report.skipped["device nodes"] += 1
            return
        if self._tree.find(parts) is not None:
            self._remove(parts)
        folder = self._tree.folder(parts[:-1])
        if entry.issym():
            os.symlink(entry.linkname, parts[-1], dir_fd=folder)
            os.utime(parts[-1], ns=(_time_of(entry),) * 2, dir_fd=folder, follow_symlinks=False)
        elif entry.islnk():
            self._link(parts, split(entry.linkname))
        elif entry.isfifo():
            os.mkfifo(parts[-1], entry.mode & 0o777, dir_fd=folder)
            os.utime(parts[-1], ns=(_time_of(entry),) * 2, dir_fd=folder, follow_symlinks=False)
        else:
            self.report.skipped[f"entries of type {entry.type!r}"] += 1

    def _link(self, parts: Parts, target: Parts) -> None:
        found = self._tree.find(target) if target else None
        if found is None or stat.S_ISDIR(found.st_mode):
            raise BadName(f"{'/'.join(parts)[:200]!r} is a hard link to what its layer does not have")
        source = os.dup(self._tree.folder(target[:-1]))  # the next folder may push it out
        try:
            folder = self._tree.folder(parts[:-1])
            os.link(target[-1], parts[-1], src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(source)

    def _attributes(self, parts: Parts, entry: tarfile.TarInfo) -> None:
        for key, value in entry.pax_headers.items():
            if not key.startswith(_XATTR) or not value:  # an empty value takes a header back (pax(1))
                continue
            name = key[len(_XATTR) :]
            if not name.startswith("user.") or name.startswith(_STEERING):
                self.report.skipped[f"attributes {name.partition('.')[0]}.*"] += 1
                continue
            data = value.encode("utf-8", "surrogateescape")
            try:
                os.setxattr(self._tree.path(parts), name, data, follow_symlinks=False)
            except OSError as error:  # ENOSPC is of the inode, not of the disk
                if error.errno not in _NO_ATTRIBUTE:
                    raise
                self.report.skipped["attributes that are too large here"] += 1

    def _count_rights(self, entry: tarfile.TarInfo) -> None:
        if entry.mode & 0o6000 and not (entry.isdir() and not entry.mode & 0o4000):
            self.report.skipped["set-user-id bits"] += 1

    def _remove(self, parts: Parts) -> None:
        self._tree.remove(parts)

    def finish(self) -> Report:
        """Modes and times of the folders, the deepest first."""
        for parts in sorted(self._folders, key=len, reverse=True):
            mode, time_ns, inode = self._folders[parts]
            if not self._is_still(parts, inode):
                continue
            path = self._tree.path(parts)
            os.chmod(path, mode)
            os.utime(path, ns=(time_ns, time_ns))
        self._tree.close()
        self.report.implicit = sorted(self._implicit)
        return self.report

    def _is_still(self, parts: Parts, inode: int) -> bool:
        """Whether a name is the folder that it was: what replaces one is not looked up among all of them."""
        try:
            found = os.stat(self._tree.root) if not parts else self._tree.find(parts)
        except BadName:
            return False
        return found is not None and stat.S_ISDIR(found.st_mode) and found.st_ino == inode


def unpack(stream: Forward, root: int, *, entries: int = ENTRIES_LIMIT, tick: Callable[[int], Any] = int) -> Report:
    """Unpack a whole tar. `tick` is told now and then how far it is. Raises `BadName`, `BadBlob`, `TooMuch`."""
    unpacker = Unpacker(root, entries=entries)
    try:
        with tarfile.open(fileobj=stream, mode="r:", errorlevel=2) as archive:  # type: ignore[call-overload]  # it reads and seeks forward
            while (entry := archive.next()) is not None:
                archive.members.clear()  # it would keep every entry of a long archive
                unpacker.add(entry, stream)
                if unpacker.report.entries % _EVERY == 0:
                    tick(stream.tell())
    except tarfile.TarError as error:
        raise BadBlob(f"the layer is no tar: {error}") from None
    stream.drain()
    return unpacker.finish()


def _fill(fd: int, size: int, content: Forward) -> int:
    left = size
    while left:
        block = content.read(min(left, BLOCK))
        if not block:
            raise BadBlob("the layer ends in the middle of a file")
        _write(fd, block)
        left -= len(block)
    return size


def _fill_sparse(fd: int, entry: tarfile.TarInfo, content: Forward) -> int:
    """The pieces that are there; holes are not walked, for they can be as large as numbers get."""
    filled = 0
    pieces: list[tuple[int, int]] = getattr(entry, "sparse")  # noqa: B009 - the type stubs have it wrong
    for offset, size in pieces:
        os.lseek(fd, offset, os.SEEK_SET)
        filled += _fill(fd, max(size, 0), content)
    os.ftruncate(fd, entry.size)
    return filled


def _write(fd: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(fd, view) :]


def _time_of(entry: tarfile.TarInfo) -> int:
    """Its time in ns, as far as file systems go; a pax header tells more than a float holds."""
    whole, _, part = entry.pax_headers.get("mtime", "").partition(".")
    try:
        seconds, rest = int(whole or entry.mtime), int((part + "0" * 9)[:9])
    except (ValueError, OverflowError):
        return 0
    return min(max(seconds, 0), _TOP_SECOND) * 1_000_000_000 + (rest if seconds >= 0 else 0)
