"""The sandbox's files, for the node: written, opened, looked at, removed.

The agent resolves paths inside the sandbox's own root with the guest's own rights, so a link leads nowhere that the
guest could not go itself, with one exception: /proc/self is the *agent's*. What an open yields is therefore checked,
not the path: it must be a regular file, and not one of proc's.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Dict, List

from .request import Refused, refusal

_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}
_SAFELY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO or a terminal must not hold us up
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link"}
LIST_LIMIT = 10_000


def write_file(path: str, content: bytes, mode: int) -> None:
    """Make a file with exactly this content and mode, and the folders that it needs. Raises `Refused`."""
    fd = open_regular(path, "w", mode, parents=True)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise refusal(error, f"cannot write {path}") from None
    finally:
        os.close(fd)


def open_regular(path: str, mode: str, perm: int, *, parents: bool) -> int:
    """A descriptor of a regular file. Opening to write sets its mode to `perm`. Raises `Refused`."""
    if mode not in _FLAGS:
        raise Refused("bad_request", f"mode is r, w or a, not {mode!r}")
    try:
        if parents and mode != "r":
            make_parents(path)
        fd = os.open(path, _FLAGS[mode] | _SAFELY, perm & 0o7777)
    except (OSError, ValueError) as error:
        raise refused(error, f"cannot open {path}") from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_dev == os.stat("/proc").st_dev:
            raise Refused("not_a_file", f"{path} is not a regular file")
        if mode == "w" and stat.S_IMODE(about.st_mode) != perm:
            os.fchmod(fd, perm)
    except OSError as error:
        os.close(fd)
        raise refusal(error, f"cannot open {path}") from None
    except Refused:
        os.close(fd)
        raise
    return fd


def make_parents(path: str) -> None:
    """The folders above a path."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        try:
            make_folders(folder)
        except FileExistsError as error:  # something else is in the way
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error


def make_folders(path: str) -> None:
    """`os.makedirs`, which recurses, for paths of any depth."""
    missing = [path]
    while (path := os.path.dirname(path.rstrip("/"))) and not os.path.lexists(path):
        missing.append(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:
            if not os.path.isdir(folder):  # or somebody was faster
                raise


def refused(error: Exception, doing: str) -> Refused:
    """An error of a path operation; ValueError is what Python makes of a NUL in a path."""
    return refusal(error, doing) if isinstance(error, OSError) else Refused("bad_path", f"{doing}: {error}")


def look_at(path: str) -> Dict[str, Any]:
    """Kind, size, mode and time of what `path` leads to, or of the link itself when it leads nowhere."""
    try:
        try:
            about = os.stat(path)
        except FileNotFoundError:
            about = os.lstat(path)
    except (OSError, ValueError) as error:
        raise refused(error, f"cannot look at {path}") from None
    return description(about)


def description(about: os.stat_result) -> Dict[str, Any]:
    """What a stat says, as plain data."""
    return {
        "type": _KINDS.get(stat.S_IFMT(about.st_mode), "other"),
        "size": about.st_size,
        "perm": stat.S_IMODE(about.st_mode),
        "mtime_ns": about.st_mtime_ns,
    }


def entries_of(path: str) -> Dict[str, Any]:
    """The entries of a folder, sorted by name; `truncated` when there are more than fit into an answer."""
    entries: List[Dict[str, Any]] = []
    try:
        with os.scandir(path) as found:
            for entry in found:
                if len(entries) >= LIST_LIMIT:
                    break
                try:
                    entries.append({"name": entry.name, **description(entry.stat(follow_symlinks=False))})
                except FileNotFoundError:
                    continue  # removed meanwhile
    except (OSError, ValueError) as error:
        raise refused(error, f"cannot list {path}") from None
    return {"entries": sorted(entries, key=lambda entry: str(entry["name"])), "truncated": len(entries) >= LIST_LIMIT}


def make_folder(path: str) -> Dict[str, Any]:
    """Make a folder and those above it; one that exists is fine."""
    try:
        make_folders(path)
    except (OSError, ValueError) as error:
        raise refused(error, f"cannot make {path}") from None
    return {}


def remove_file(path: str) -> bool:
    """Remove anything but a folder; False if it is one."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return False
        os.unlink(path)
    except (OSError, ValueError) as error:
        raise refused(error, f"cannot remove {path}") from None
    return True
