"""The file layer that a sandbox saved (`guest/agent/layer.py`) becomes a folder for an overlay.

The stream was written by a process that shared its sandbox with whatever ran there, so it is trusted no more than a
tar from elsewhere. Where sandboxes have something mounted it may hold nothing: a link there would lead the mount away.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Callable, Mapping, Set
from typing import Any, BinaryIO

from hotbed.runtime.images.streams import BLOCK, BadBlob, TooMuch
from hotbed.runtime.images.unpacking import Report
from hotbed.runtime.linux.beneath import Parts, Tree, split

_LENGTHS = struct.Struct("!II")
_HEADER_LIMIT = 1 << 20
_STEERING = ("user.overlay.", "user.fuseoverlayfs.")

Entry = Mapping[str, Any]


def restore(source: int, root: int, *, most: int, entries: int, mounted: Set[str] = frozenset()) -> Report:
    """Make what the stream tells of. Raises `BadBlob`, `BadName`, `TooMuch`, OSError."""
    report, tree = Report(), Tree(root)
    folders: list[tuple[Parts, Entry]] = []
    with os.fdopen(os.dup(source), "rb", BLOCK) as stream:
        while (entry := _header(stream)) is not None:
            report.entries += 1
            if report.entries > entries:
                raise TooMuch(f"it has more than {entries} entries")
            try:
                parts = split(str(entry["path"]))
                if parts[0] in mounted:
                    report.skipped["entries where sandboxes have a mount"] += 1
                    _pass_over(stream, int(entry.get("size", 0)))
                    continue
                report.size += _put(tree, parts, entry, stream, most - report.size)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise error if isinstance(error, (BadBlob, TooMuch)) else BadBlob(f"not a layer: {error}") from None
            if entry["kind"] == "folder":
                folders.append((parts, entry))
    for parts, entry in reversed(folders):
        _finish(tree.path(parts), entry)
    tree.close()
    return report


def _header(stream: BinaryIO) -> Entry | None:
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size or (size := _LENGTHS.unpack(lengths)[0]) > _HEADER_LIMIT:
        raise BadBlob("not a layer")
    try:
        found = json.loads(stream.read(size))
    except (ValueError, RecursionError):
        raise BadBlob("not a layer") from None
    if not isinstance(found, dict) or "kind" not in found:
        raise BadBlob("not a layer")
    return found


def _pass_over(stream: BinaryIO, size: int) -> None:
    while size > 0 and (block := stream.read(min(size, BLOCK))):
        size -= len(block)


def _put(tree: Tree, parts: Parts, entry: Entry, stream: BinaryIO, room: int) -> int:
    """One entry; how many bytes of content it has."""
    if entry["kind"] == "file":
        return _fill(tree, parts, entry, stream, room)
    make = _MAKERS.get(str(entry["kind"]))
    if make is None:
        raise BadBlob(f"no entry of kind {entry['kind']!r:.40}")
    make(tree, parts, entry)
    return 0


def _make_folder(tree: Tree, parts: Parts, entry: Entry) -> None:
    os.mkdir(parts[-1], 0o700, dir_fd=tree.folder(parts[:-1]))
    if entry.get("opaque"):
        tree.set_opaque(parts)


def _make_same(tree: Tree, parts: Parts, entry: Entry) -> None:
    target = split(str(entry["to"]))
    source = os.dup(tree.folder(target[:-1]))  # the next folder may push it out
    try:
        folder = tree.folder(parts[:-1])
        os.link(target[-1], parts[-1], src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        os.close(source)


def _make_link(tree: Tree, parts: Parts, entry: Entry) -> None:
    folder = tree.folder(parts[:-1])
    os.symlink(str(entry["to"]), parts[-1], dir_fd=folder)
    os.utime(parts[-1], ns=_times(entry), dir_fd=folder, follow_symlinks=False)


def _make_node(tree: Tree, parts: Parts, entry: Entry) -> None:
    if entry["type"] == stat.S_IFIFO:  # a socket without its process is nothing
        os.mkfifo(parts[-1], 0o600, dir_fd=tree.folder(parts[:-1]))
        _finish(tree.path(parts), entry)


_MAKERS: Mapping[str, Callable[[Tree, Parts, Entry], None]] = {
    "folder": _make_folder,
    "gone": lambda tree, parts, _: tree.white_out(parts),
    "same": _make_same,
    "link": _make_link,
    "node": _make_node,
}


def _fill(tree: Tree, parts: Parts, entry: Entry, stream: BinaryIO, room: int) -> int:
    size = left = int(entry["size"])
    if not 0 <= size <= room:
        raise TooMuch("the layer is larger than there is room for")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(parts[-1], flags, 0o600, dir_fd=tree.folder(parts[:-1]))
    try:
        while left:
            block = stream.read(min(left, BLOCK))
            if not block:
                raise BadBlob("the layer ends in the middle of a file")
            left -= len(block)
            view = memoryview(block)
            while view:
                view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    _finish(tree.path(parts), entry)
    return size


def _finish(path: str, entry: Entry) -> None:
    for key, value in entry.get("attributes", {}).items():
        if str(key).startswith("user.") and not str(key).startswith(_STEERING):
            os.setxattr(path, key, bytes.fromhex(value), follow_symlinks=False)
    os.chmod(path, int(entry["mode"]) & 0o1777)
    os.utime(path, ns=_times(entry))


def _times(entry: Entry) -> tuple[int, int]:
    accessed, modified = entry["times"]
    return min(max(int(accessed), 0), 1 << 62), min(max(int(modified), 0), 1 << 62)
