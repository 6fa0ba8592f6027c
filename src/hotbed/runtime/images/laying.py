"""Unpacking one layer in a process of its own, which is nobody in particular.

The process that reads what others packed has no right that could be of use to them: as root's child it becomes the
user that sandboxes are, it can gain nothing by an exec, and it holds two descriptors, the bytes and the folder. What
it makes is owned by that user without anybody changing owners. Its memory is limited: no layer needs more, whatever its
size, and a header may claim to be as long as a layer can be.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import tarfile
from collections.abc import Callable, Mapping, Set
from typing import Any, NoReturn

from hotbed.guest import kernel
from hotbed.runtime.images import saved, streams, unpacking
from hotbed.runtime.images.manifests import BadImage, Blob
from hotbed.runtime.images.record import hex_of
from hotbed.runtime.images.streams import BadBlob, Forward, Slice, TooMuch
from hotbed.runtime.linux.beneath import BadName
from hotbed.runtime.linux.identity import Ids

_CORRUPT, _REFUSED, _TOO_MUCH, _FAILED = "corrupt", "refused", "too much", "failed"
MEMORY_LIMIT = 1 << 30
_PIPE = 1 << 20


class Corrupt(BadBlob):
    """The bytes are not those of their digest: another copy may be good."""


def lay(blob: Blob, folder: int, ids: Ids, *, most: int, entries: int, tick: Callable[[int], Any]) -> Mapping[str, Any]:
    """Unpack a blob into an empty folder; `diff_id`, `size`, `entries`, `implicit` and `skipped`.

    Raises `Corrupt`, `BadImage`, `TooMuch`, OSError.
    """
    if os.path.isdir(blob.path):
        source, writer = os.pipe2(os.O_CLOEXEC)
        packer = _fork(lambda _: pack(blob.path, writer), ids=None, keep=(writer,))
        os.close(writer)
    else:
        source, packer = os.open(blob.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), None
    try:
        return _in_a_child(lambda tell: _unpack(source, blob, folder, most, entries, tell), ids, (source, folder), tick)
    finally:
        os.close(source)
        if packer is not None:
            os.waitpid(packer, 0)


def lay_saved(stream: int, folder: int, ids: Ids, *, most: int, entries: int, mounted: Set[str]) -> Mapping[str, Any]:
    """The same for the file layer that a sandbox has saved."""

    def work(_: Callable[[int], Any]) -> dict[str, Any]:
        report = saved.restore(stream, folder, most=most, entries=entries, mounted=mounted)
        return {"size": report.size, "entries": report.entries, "implicit": [], "skipped": dict(report.skipped)}

    return _in_a_child(work, ids, (stream, folder), lambda _: None)


def _unpack(
    source: int, blob: Blob, folder: int, most: int, entries: int, tell: Callable[[int], Any]
) -> dict[str, Any]:
    if stat.S_ISFIFO(os.fstat(source).st_mode):
        raw: Any = _Piped(source)
        stream = Forward(raw, most)
    else:
        raw = Slice(source, blob.offset, blob.length)
        stream = Forward(streams.decompressed(raw, os.pread(source, min(4, blob.length), blob.offset)), most)
    try:
        report = unpacking.unpack(stream, folder, entries=entries, tick=tell)
    finally:  # whatever was wrong with it: if these are other bytes, that is what was wrong
        if isinstance(raw, Slice) and blob.digest:
            raw.drain()
            _check("blob", blob.digest, raw.digest())
    _check("layer", blob.diff_id, stream.digest())
    return {
        "diff_id": stream.digest(),
        "size": report.size,
        "entries": report.entries,
        "implicit": report.implicit,
        "skipped": dict(report.skipped),
    }


def _check(what: str, wanted: str, found: str) -> None:
    if wanted and hex_of(wanted) != hex_of(found):
        raise Corrupt(f"{what} {wanted} has the content of {found}")


class _Piped:
    """A pipe's bytes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, size: int = -1) -> bytes:
        return os.read(self._fd, _PIPE if size < 0 else size)


def pack(path: str, sink: int) -> None:
    """Write a root directory as a tar. Sockets are left out; attributes of users go along."""
    with os.fdopen(sink, "wb", _PIPE) as out, tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.add(path, arcname=".", filter=lambda entry: _with_attributes(path, entry))


def _with_attributes(top: str, entry: tarfile.TarInfo) -> tarfile.TarInfo:
    where, attributes = os.path.join(top, entry.name), dict(entry.pax_headers)
    if not entry.issym() and not entry.islnk():
        try:
            for name in os.listxattr(where, follow_symlinks=False):
                if name.startswith("user."):
                    value = os.getxattr(where, name, follow_symlinks=False)
                    attributes["SCHILY.xattr." + name] = value.decode("utf-8", "surrogateescape")
        except OSError:
            pass  # a file system without attributes
        entry.pax_headers = attributes
    return entry


def _in_a_child(
    work: Callable[[Callable[[int], Any]], Mapping[str, Any]],
    ids: Ids,
    keep: tuple[int, ...],
    tick: Callable[[int], Any],
) -> Mapping[str, Any]:
    """Do it as nobody in particular; its answer, or its failure as an exception."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)

    def run(tell: Callable[[Mapping[str, Any]], None]) -> None:
        tell(_attempt(lambda: work(lambda at: tell({"at": at}))))

    pid = _fork(lambda _: run(lambda message: _say(theirs, message)), ids=ids, keep=(*keep, theirs))
    os.close(theirs)
    try:
        return _hear(ours, tick)
    finally:
        os.close(ours)
        _end(pid)


def _attempt(work: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    try:
        return {"done": dict(work())}
    except Corrupt as error:
        return {_CORRUPT: str(error)}
    except TooMuch as error:
        return {_TOO_MUCH: str(error)}
    except (BadBlob, BadName, BadImage) as error:
        return {_REFUSED: str(error)}
    except (MemoryError, RecursionError) as error:
        return {_REFUSED: f"the layer cannot be unpacked within {MEMORY_LIMIT >> 20} MiB: {type(error).__name__}"}
    except OSError as error:
        return {_FAILED: [error.errno, error.strerror or str(error)]}


def _say(fd: int, message: Mapping[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(fd, data) :]


def _hear(fd: int, tick: Callable[[int], Any]) -> Mapping[str, Any]:
    with os.fdopen(os.dup(fd), "rb") as lines:
        for line in lines:
            message = json.loads(line)
            if "at" in message:
                tick(message["at"])
            elif "done" in message:
                found: Mapping[str, Any] = message["done"]
                return found
            elif _CORRUPT in message:
                raise Corrupt(message[_CORRUPT])
            elif _REFUSED in message:
                raise BadImage(message[_REFUSED])
            elif _TOO_MUCH in message:
                raise TooMuch(message[_TOO_MUCH])
            else:
                raise OSError(*message[_FAILED])
    raise BadImage("the process that unpacked the layer died")


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(pid, 0)


def _fork(work: Callable[[None], None], *, ids: Ids | None, keep: tuple[int, ...]) -> int:
    """Run it in a child that ends with this process, as `ids` or as ourselves."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(work, ids, keep, parent)
    return pid


def _become(work: Callable[[None], None], ids: Ids | None, keep: tuple[int, ...], parent: int) -> NoReturn:
    code = 1
    try:
        lowest = 3
        for fd in sorted(keep):
            os.closerange(lowest, fd)
            lowest = fd + 1
        kernel.close_from(lowest)
        if ids is not None and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(ids.gid, ids.gid, ids.gid)
            os.setresuid(ids.uid, ids.uid, ids.uid)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            os.umask(0)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            most = _data_size() + MEMORY_LIMIT
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            work(None)
            code = 0
    finally:
        os._exit(code)


def _data_size() -> int:
    """Bytes of this process that RLIMIT_DATA counts already: it is a fork."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
