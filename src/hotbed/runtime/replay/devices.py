"""The files whose content is random, as a pinned program sees them when it opens them.

Every plain open of a pinned program is stopped and its path read; for the few paths below it gets a descriptor of ours
instead of the kernel's:

- /dev/urandom and /dev/random: a pipe of one page with a stream of its own *per open*, named by the process and how
  many it opened before. So what one reader takes in advance (`tr -dc a-z </dev/urandom | head -c 8`) is missing
  nowhere else. It is filled again only when it is empty: then how reads are cut is reproducible too.
- /proc/sys/kernel/random/uuid: a new UUID per open. boot_id and machine-id: one value per seed.

A pipe answers a read with what it holds. Of the programs in use only `dd` takes a short read for an end, and dd reads
through descriptor 0: large reads from there are stopped as well, and served whole.

CAVEAT: a path is compared as the program wrote it, after its directory is resolved; a symlink to one of these files
with another name is not recognized, and its content is the kernel's.
"""

from __future__ import annotations

import fcntl
import os
import posixpath
import select
import uuid

from hotbed.runtime.replay.processes import Process
from hotbed.runtime.replay.streams import Stream, Streams
from hotbed.runtime.replay.watcher import Watching

RANDOM = frozenset({b"/dev/urandom", b"/dev/random"})
UUID = b"/proc/sys/kernel/random/uuid"
BOOT_ID = b"/proc/sys/kernel/random/boot_id"
MACHINE_ID = frozenset({b"/etc/machine-id", b"/var/lib/dbus/machine-id"})
_PATHS = RANDOM | MACHINE_ID | {UUID, BOOT_ID}
ENDINGS = tuple({posixpath.basename(path) for path in _PATHS})
PATH_LIMIT = 256
READ_LIMIT = 16 << 20
AT_FDCWD = -100
_PAGE = 4096


class Source:
    """One open random device: the pipe's end that we write, and the stream that comes out of the other."""

    __slots__ = ("fd", "inode", "stream")

    def __init__(self, fd: int, inode: int, stream: Stream) -> None:
        self.fd = fd
        self.inode = inode
        self.stream = stream

    def fill(self) -> bool:
        """Fill the empty pipe; False when nobody can read it any more."""
        try:
            os.write(self.fd, self.stream.take(_PAGE))
        except BrokenPipeError:
            return False
        return True

    def take(self, size: int) -> bytes:
        """The next bytes of the stream, those that wait in the pipe first."""
        waiting = b""
        reader = os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            waiting = os.read(reader, min(size, _PAGE))
        except BlockingIOError:
            pass
        finally:
            os.close(reader)
        return waiting + self.stream.take(size - len(waiting))


class Devices:
    """What one pinned rollout has open."""

    def __init__(self, streams: Streams, watching: Watching) -> None:
        self._streams = streams
        self._watching = watching
        self._sources: dict[int, Source] = {}  # by inode

    def open(self, process: Process, path: bytes) -> int:
        """A new descriptor to be given to the process; the caller closes it."""
        process.opened += 1
        label = f"process:{process.name}:open:{process.opened}"
        if path in RANDOM:
            return self._pipe(self._streams.stream(label))
        if path == UUID:
            return _file(_uuid(self._streams.fixed(label, 16)))
        if path == BOOT_ID:
            return _file(_uuid(self._streams.fixed("boot_id", 16)))
        return _file(self._streams.fixed("machine-id", 16).hex().encode() + b"\n")

    def behind(self, tid: int, fd: int) -> Source | None:
        """The random device that a thread's descriptor is open on, if it is one of ours."""
        if not self._sources:
            return None
        kind, _, inode = os.readlink(f"/proc/{tid}/fd/{fd}").partition(":")
        return self._sources.get(int(inode[1:-1])) if kind == "pipe" else None

    def close(self) -> None:
        """Close everything. Readers see the end of file."""
        for source in list(self._sources.values()):
            self._drop(source)

    def _pipe(self, stream: Stream) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PAGE)
        source = Source(writer, os.fstat(writer).st_ino, stream)
        source.fill()
        self._sources[source.inode] = source
        self._watching.watch(writer, lambda events: self._wanted(source, events), select.EPOLLOUT)
        return reader

    def _wanted(self, source: Source, events: int) -> None:
        if events & select.EPOLLERR or not source.fill():
            self._drop(source)

    def _drop(self, source: Source) -> None:
        del self._sources[source.inode]
        self._watching.release(source.fd)


def recognize(tid: int, directory: int, path: bytes) -> bytes | None:
    """Which of our files a path names, or None."""
    if not path.endswith(ENDINGS):  # nearly all of them
        return None
    if not path.startswith(b"/"):
        link = f"/proc/{tid}/cwd" if directory == AT_FDCWD else f"/proc/{tid}/fd/{directory}"
        path = os.readlink(link.encode()) + b"/" + path
    path = posixpath.normpath(path)
    path = path[1:] if path.startswith(b"//") else path
    return path if path in _PATHS else None


def _file(content: bytes) -> int:
    fd = os.memfd_create("replay", os.MFD_CLOEXEC)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _uuid(data: bytes) -> bytes:
    return str(uuid.UUID(bytes=data, version=4)).encode() + b"\n"
