"""Copying the upper folder of an overlay into another one, whatever a sandbox has put there.

The source is at rest (its sandbox is frozen) and hostile in content: nothing is opened that a name leads to but what is
at that name (O_NOFOLLOW, descriptors of folders all the way), holes stay holes, and the depth of a tree costs neither
descriptors nor recursion: the way up is `..`, checked to be the folder that one came from. What is copied is the form
of an upper folder (Documentation/filesystems/overlayfs.rst): a removed file is a device node 0:0, a folder that hides
the one below has an attribute. Content, modes, times, links and `user.*` attributes come over; nothing else can be
there, for a sandbox can make no devices and nothing that belongs to anyone else.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Dict, Iterator, List, NamedTuple, Tuple

from .. import steps

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 24
_PATH_LIMIT = 4000
_OVERLAY = "user.overlay."
_OPAQUE = _OVERLAY + "opaque"
_ESCAPED = _OVERLAY + "overlay."  # what a sandbox set itself, as the overlay keeps it


class _Level(NamedTuple):
    """A folder that is being copied."""

    info: os.stat_result
    names: Iterator[str]
    path: str


class TreeCopy:
    """One copy. `files` counts what was made."""

    def __init__(self, source: int, target: int) -> None:
        """From and to open folders, which stay the caller's."""
        self.files = 0
        self._source = os.dup(source)
        self._target = os.dup(target)
        self._root = target
        self._links: Dict[Tuple[int, int], str] = {}
        self._levels: List[_Level] = []

    def run(self) -> None:
        """Copy everything. Raises OSError."""
        try:
            self._enter("")
            while self._levels:
                level = self._levels[-1]
                name = next(level.names, None)
                if name is None:
                    self._leave()
                else:
                    self._copy(name, level.path)
        finally:
            os.close(self._source)
            os.close(self._target)

    def _enter(self, path: str) -> None:
        """The folders at hand are a new level."""
        info = os.fstat(self._source)
        self._levels.append(_Level(info, iter(os.listdir(self._source)), path))

    def _leave(self) -> None:
        level = self._levels.pop()
        _finish(self._source, self._target, level.info)
        if self._levels:
            self._source = steps.up(self._source, self._levels[-1].info)
            self._target = steps.to(self._target, "..")

    def _copy(self, name: str, path: str) -> None:
        info = os.stat(name, dir_fd=self._source, follow_symlinks=False)
        self.files += 1
        if stat.S_ISDIR(info.st_mode):
            os.mkdir(name, 0o700, dir_fd=self._target)
            self._source = steps.to(self._source, name)
            self._target = steps.to(self._target, name)
            self._enter(f"{path}{name}/")
        elif stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(name, dir_fd=self._source), name, dir_fd=self._target)
            self._date(name, info)
        elif stat.S_ISREG(info.st_mode):
            self._file(name, path + name, info)
        elif not stat.S_ISBLK(info.st_mode) and info.st_rdev == 0:
            os.mknod(name, info.st_mode, 0, dir_fd=self._target)
            self._date(name, info)

    def _date(self, name: str, info: os.stat_result) -> None:
        os.utime(name, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=self._target, follow_symlinks=False)

    def _file(self, name: str, path: str, info: os.stat_result) -> None:
        if info.st_nlink > 1:
            first = self._links.setdefault((info.st_dev, info.st_ino), path)
            if first != path and len(os.fsencode(first)) < _PATH_LIMIT:
                os.link(first, name, src_dir_fd=self._root, dst_dir_fd=self._target, follow_symlinks=False)
                return
        source = os.open(name, _READ, dir_fd=self._source)
        try:
            target = os.open(name, _MAKE, 0o600, dir_fd=self._target)
            try:
                _content(source, target, info.st_size)
                _finish(source, target, info)
            finally:
                os.close(target)
        finally:
            os.close(source)


def _content(source: int, target: int, size: int) -> None:
    """The bytes that are there; the holes between them cost nothing."""
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole is left
        end = min(size, os.lseek(source, at, os.SEEK_HOLE))
        os.lseek(target, at, os.SEEK_SET)
        while at < end:
            moved = os.sendfile(target, source, at, min(end - at, _CHUNK))
            if not moved:
                raise OSError(errno.ESTALE, "a file became shorter while it was copied")
            at += moved
    os.ftruncate(target, size)


def _finish(source: int, target: int, info: os.stat_result) -> None:
    """Attributes, mode and times, last: what is made in a folder changes its times."""
    for key in os.listxattr(source):
        if key.startswith("user.") and (not key.startswith(_OVERLAY) or key == _OPAQUE or key.startswith(_ESCAPED)):
            os.setxattr(target, key, os.getxattr(source, key))
    os.fchmod(target, stat.S_IMODE(info.st_mode))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
