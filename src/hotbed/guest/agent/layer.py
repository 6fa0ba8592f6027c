"""A sandbox's file layer, as one stream: everything that differs from its template, and putting that over another's.

Taken from the upper folder of the overlay (Documentation/filesystems/overlayfs.rst), which holds just that, through a
descriptor that only the agent has: there a removed file is a device node 0:0, and a folder that hides the one below
has an attribute. Put back through the merged view, as a program would, since nobody may change an upper folder under a
mounted overlay. Content, modes, times, links and `user.*` attributes come back as they were; inode numbers do not.

The stream is `!II`-framed like everything else (`frames`): a header for each entry, parents first, a file's content
as its body.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
from typing import Any, BinaryIO, Dict, Generator, Iterator, List, NamedTuple, Optional, Tuple

from .. import steps
from .inventory import ipc_objects
from .request import Refused

_LENGTHS = struct.Struct("!II")
_COPY = 1 << 20
_OWN_ATTRIBUTES = "user.overlay."
_OPAQUE = "user.overlay.opaque"
_WHITEOUT = "user.overlay.whiteout"
_HEADER_LIMIT = 1 << 20
_HEADER_ROOM = 8192  # a path and its attributes; what is larger goes the other way
_SMALL_ENTRIES = 100
SMALL_BYTES = 48 << 10  # a pipe holds it, so that writing it does not wait for who reads

Entry = Dict[str, Any]


class Small(NamedTuple):
    """A layer that is small enough to be saved on the spot."""

    data: bytes
    outcome: Dict[str, Any]


class _Level(NamedTuple):
    """A folder that is being walked."""

    info: os.stat_result
    names: Iterator[str]
    path: str


def save_small(upper: int) -> Optional[Small]:
    """The layer below `upper`, if it is small; None if it has to be left to a process of its own.

    Most environments have written a file or two, and forking for these would take longer than all the rest.
    """
    out = io.BytesIO()
    entries = size = 0
    seen: Dict[Tuple[int, int], str] = {}
    walk = _walk(upper)
    try:
        for path, folder, name in walk:
            entry = _describe(path, folder, name, seen)
            if entry is None:
                continue
            entries += 1
            size += entry.get("size", 0)
            if entries > _SMALL_ENTRIES or out.tell() + entry.get("size", 0) > SMALL_BYTES - _HEADER_ROOM:
                return None
            _write_small(out, entry, folder, name)
    finally:
        walk.close()
    if out.tell() > SMALL_BYTES:
        return None
    return Small(out.getvalue(), {"files": entries, "size": size, "ipc": ipc_objects()})


def _write_small(out: io.BytesIO, entry: Entry, folder: int, name: str) -> None:
    header = json.dumps(entry).encode()
    out.write(_LENGTHS.pack(len(header), 0) + header)
    if entry.get("size", 0):
        source = _open(folder, name, 0)
        try:
            content = os.read(source, entry["size"])
        finally:
            os.close(source)
        if len(content) != entry["size"]:
            raise OSError(5, "a file became shorter while it was saved", entry["path"])
        out.write(content)


def save(upper: int, sink: int) -> Dict[str, Any]:
    """Write the layer below folder descriptor `upper` to `sink`; how many entries, and bytes of content."""
    entries = size = 0
    seen: Dict[Tuple[int, int], str] = {}
    with os.fdopen(sink, "wb", _COPY, closefd=False) as out:
        for path, folder, name in _walk(upper):
            entry = _describe(path, folder, name, seen)
            if entry is None:
                continue
            entries += 1
            size += _write(out, entry, folder, name)
    return {"files": entries, "size": size, "ipc": ipc_objects()}


def _walk(upper: int) -> Generator[Tuple[str, int, str], None, None]:
    """(path, descriptor of the folder it is in, name) of everything, parents first.

    One folder is open at a time, however many there are and however deep they lie.
    """
    folder = os.dup(upper)
    try:
        levels = [_Level(os.fstat(folder), iter(sorted(os.listdir(folder))), "")]
        while levels:
            level = levels[-1]
            name = next(level.names, None)
            if name is not None:
                yield level.path + name, folder, name
                if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    folder = _enter(folder, name, levels)
            else:
                levels.pop()
                if levels:
                    folder = steps.up(folder, levels[-1].info)
    finally:
        os.close(folder)


def _enter(folder: int, name: str, levels: List[_Level]) -> int:
    """The folder with this name is a new level, unless it is empty: then it may have no way back, and needs none."""
    inner = _open(folder, name, os.O_DIRECTORY)
    try:
        names = sorted(os.listdir(inner))
        if names:
            levels.append(_Level(os.fstat(inner), iter(names), f"{levels[-1].path}{name}/"))
            folder, inner = inner, folder
    finally:
        os.close(inner)
    return folder


def _open(folder: int, name: str, flags: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder)


def _describe(path: str, folder: int, name: str, seen: Dict[Tuple[int, int], str]) -> Any:
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    entry: Entry = {"path": path, "mode": stat.S_IMODE(info.st_mode), "times": [info.st_atime_ns, info.st_mtime_ns]}
    if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
        first = seen.setdefault((info.st_dev, info.st_ino), path)
        if first != path:
            return {"path": path, "kind": "same", "to": first}
    if stat.S_ISLNK(info.st_mode):
        return {**entry, "kind": "link", "to": os.readlink(name, dir_fd=folder)}
    if stat.S_ISCHR(info.st_mode):
        return {"path": path, "kind": "gone"} if info.st_rdev == 0 else None
    if stat.S_ISFIFO(info.st_mode) or stat.S_ISSOCK(info.st_mode):
        return {**entry, "kind": "node", "type": stat.S_IFMT(info.st_mode)}
    attributes = _attributes(folder, name)
    if _WHITEOUT in attributes:
        return {"path": path, "kind": "gone"}
    entry["attributes"] = {key: value for key, value in attributes.items() if not key.startswith(_OWN_ATTRIBUTES)}
    if stat.S_ISDIR(info.st_mode):
        return {**entry, "kind": "folder", "opaque": attributes.get(_OPAQUE) == "79"}
    return {**entry, "kind": "file", "size": info.st_size}


def _attributes(folder: int, name: str) -> Dict[str, str]:
    try:
        path = f"/proc/self/fd/{folder}/{name}"
        keys = [key for key in os.listxattr(path, follow_symlinks=False) if key.startswith("user.")]
        return {key: os.getxattr(path, key, follow_symlinks=False).hex() for key in keys}
    except OSError:
        return {}


def _write(out: BinaryIO, entry: Entry, folder: int, name: str) -> int:
    """One entry; how many bytes of content it has."""
    size = entry.get("size", 0)
    header = json.dumps(entry).encode()
    out.write(_LENGTHS.pack(len(header), 0) + header)
    if not size:
        return 0
    out.flush()
    source = _open(folder, name, 0)
    try:
        left = size
        while left:
            moved = os.sendfile(out.fileno(), source, None, min(left, _COPY)) if left else 0
            if not moved:
                raise OSError(5, "a file became shorter while it was saved", entry["path"])
            left -= moved
    finally:
        os.close(source)
    return int(size)


def restore(source: int, root: str = "/") -> Dict[str, Any]:
    """Put the layer that `source` yields over the tree at `root`; how many entries."""
    entries = 0
    folders: List[Entry] = []
    with os.fdopen(source, "rb", _COPY, closefd=False) as stream:
        while True:
            entry = _read(stream)
            if entry is None:
                break
            entries += 1
            path = _place(root, entry["path"])
            _put(path, entry, stream, root)
            if entry["kind"] == "folder":
                folders.append(entry)
    for entry in reversed(folders):  # last, or what is made in them changes their times again
        _finish(_place(root, entry["path"]), entry)
    return {"files": entries}


def _read(stream: BinaryIO) -> Any:
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    size, _ = _LENGTHS.unpack(lengths)
    if size > _HEADER_LIMIT:
        raise Refused("bad_request", "not a layer")
    return json.loads(stream.read(size))


def _place(root: str, path: str) -> str:
    if ".." in path.split("/"):
        raise Refused("bad_path", f"{path!r:.256} leads out of the layer")
    return os.path.join(root, path.lstrip("/"))


def _put(path: str, entry: Entry, stream: BinaryIO, root: str) -> None:
    kind = entry["kind"]
    if kind == "folder":
        if entry["opaque"] or not os.path.isdir(path) or os.path.islink(path):
            _clear(path)
            os.mkdir(path, 0o700)
        return
    _clear(path)
    if kind == "gone":
        return
    if kind == "same":
        os.link(_place(root, entry["to"]), path, follow_symlinks=False)
    elif kind == "link":
        os.symlink(entry["to"], path)
        os.utime(path, ns=tuple(entry["times"]), follow_symlinks=False)
    elif kind == "node":
        os.mknod(path, entry["type"] | 0o600)
        _finish(path, entry)
    else:
        _fill(path, entry["size"], stream)
        _finish(path, entry)


def _fill(path: str, size: int, stream: BinaryIO) -> None:
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while size:
            block = stream.read(min(size, _COPY))
            if not block:
                raise Refused("bad_request", "the layer ends in the middle of a file")
            size -= len(block)
            while block:
                block = block[os.write(target, block) :]
    finally:
        os.close(target)


def _finish(path: str, entry: Entry) -> None:
    for key, value in entry.get("attributes", {}).items():
        os.setxattr(path, key, bytes.fromhex(value), follow_symlinks=False)
    os.chmod(path, entry["mode"])
    os.utime(path, ns=tuple(entry["times"]))


def _clear(path: str) -> None:
    """Remove whatever is there."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            import shutil

            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
