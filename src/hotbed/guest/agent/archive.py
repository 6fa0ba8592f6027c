"""Trees of files, in forked children of the agent: a tree can be large, and the agent must not wait for it.

The child keeps one descriptor (the tar stream) and tells its outcome on stdout as one JSON object. `tarfile` is
imported there: keeping it in every template would cost each fork more than an archive now and then does.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, Iterator, NoReturn, Optional, Tuple

from .box import NULL, Box
from .child import become
from .request import Refused, refusal

if TYPE_CHECKING:
    import tarfile
    from contextlib import ExitStack

OnOutcome = Callable[[Dict[str, Any]], None]
Work = Callable[[int], Dict[str, Any]]

_OUTCOME_LIMIT = 4096
_COPY = 1 << 18
FAILED = "HOTBED.failed"  # in the pax header of the last member of an archive that has no end


def fork(box: Box, work: Work, *, keep: int, on_outcome: OnOutcome, stdin: int = NULL) -> None:
    """Run `work` with descriptor `keep` in a child, and call with its outcome ({"code", "message"} on failure)."""
    box.open()
    box.marks.next()
    outcome, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        pid = os.fork()
    except OSError as error:
        os.close(outcome)
        os.close(end)
        raise refusal(error, "cannot start a helper") from None
    if pid == 0:
        run(work, keep, end, stdin)
    os.close(end)
    box.children.expect(pid, lambda _status, _usage: on_outcome(outcome_from(outcome)))


def run(work: Work, keep: int, end: int, stdin: int = NULL) -> NoReturn:
    """In the child."""
    try:
        kept = become(stdin, end, NULL, keep=keep)
        assert kept is not None
        os.write(1, json.dumps(attempt(work, kept)).encode())
        os._exit(0)
    finally:
        os._exit(70)


def attempt(work: Work, fd: int) -> Dict[str, Any]:
    """The outcome of the work, failures included."""
    try:
        return work(fd)
    except Refused as error:
        return {"code": error.code, "message": str(error)[:1024]}
    except OSError as error:
        told = refusal(error, str(error.filename or "archive")[:512])
        return {"code": told.code, "message": str(told)}
    except (ValueError, RecursionError) as error:
        return {"code": "bad_path", "message": str(error)[:1024]}


def outcome_from(fd: int) -> Dict[str, Any]:
    """What the child told before it ended."""
    try:
        told = json.loads(os.read(fd, _OUTCOME_LIMIT))
    except (OSError, ValueError):
        return {"code": "failed", "message": "the helper process was killed"}
    finally:
        os.close(fd)
    return told if type(told) is dict else {"code": "failed", "message": "the helper process said nothing"}


def pack(path: str, fd: int) -> Dict[str, Any]:
    """Write a tar of the file or folder to `fd`: folders, regular files and links."""
    import tarfile
    from contextlib import ExitStack

    packed = holes = 0
    disk = os.statvfs("/")
    with os.fdopen(fd, "wb", _COPY) as sink, tarfile.open(
        fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT
    ) as tar, ExitStack() as locked:
        try:
            for source, name in below(path, locked):
                holes += holes_of(os.lstat(source))
                if holes > disk.f_blocks * disk.f_frsize:
                    raise Refused("too_large", f"{path} holds sparse files of more than this disk's size")
                with ExitStack() as briefly:
                    packed += add(tar, source, name, briefly)
        except OSError as error:
            raise told(tar, refusal(error, f"cannot pack all of {path}")) from None
        except Refused as error:
            raise told(tar, error) from None
    return {"files": packed}


def told(tar: tarfile.TarFile, error: Refused) -> Refused:
    """The error, told to who reads the archive too: in a last member, which no end follows."""
    info = tar.tarinfo(".")
    info.type = b"5"  # a folder
    info.pax_headers = {FAILED: f"{error.code} {error}"[:1024]}
    tar.addfile(info)
    return error


def holes_of(about: os.stat_result) -> int:
    """The bytes of a regular file that are on no disk, but would be on that of whoever gets the archive."""
    return max(0, about.st_size - about.st_blocks * 512) if stat.S_ISREG(about.st_mode) else 0


def unlock(path: str, bits: int, until: ExitStack) -> None:
    """Let the owner, who is the same user, read something whose mode says no, for so long."""
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    if mode & bits != bits:
        os.chmod(path, mode | bits)
        until.callback(os.chmod, path, mode)


def below(path: str, locked: ExitStack) -> Iterator[Tuple[str, str]]:
    """(path, name in the archive) of everything to pack. Folders that are locked are open until `locked` is closed."""
    if not stat.S_ISDIR(os.stat(path).st_mode):
        yield path, os.path.basename(path)
        return
    folders = [("", path)]
    while folders:
        prefix, folder = folders.pop()
        if not os.access(folder, os.R_OK | os.X_OK):
            unlock(folder, 0o500, locked)
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            yield entry.path, prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append((prefix + entry.name + "/", entry.path))


def add(tar: tarfile.TarFile, source: str, name: str, briefly: ExitStack) -> int:
    """One member; 0 if it is of a kind that is not packed."""
    file: Optional[BinaryIO] = None
    about = os.lstat(source)
    if stat.S_ISREG(about.st_mode):
        if not os.access(source, os.R_OK):
            unlock(source, 0o400, briefly)
        file = os.fdopen(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb", _COPY)
        info = tar.gettarinfo(arcname=name, fileobj=file)
    else:
        info = tar.gettarinfo(source, arcname=name)
    if info is None or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        return 0
    info.mode = stat.S_IMODE(about.st_mode)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    tar.addfile(info, file if info.isreg() else None)
    if file is not None:
        file.close()
    return 1


def unpack(path: str, fd: int) -> Dict[str, Any]:
    """Extract a tar stream below `path`, nothing outside of it, no devices, no setuid bits."""
    import tarfile

    os.makedirs(path, exist_ok=True)
    root = os.path.realpath(path)
    unpacked = 0
    try:
        with os.fdopen(fd, "rb", _COPY) as source, tarfile.open(fileobj=source, mode="r|") as tar:
            for member in tar:
                unpacked += extract(tar, member, root)
    except tarfile.TarError as error:
        raise Refused("bad_request", f"not a tar stream: {error}") from None
    return {"files": unpacked}


def extract(tar: tarfile.TarFile, member: tarfile.TarInfo, root: str) -> int:
    """One member; 0 if it is of a kind that is not extracted."""
    target = place(root, member.name)
    if member.isdir():
        os.makedirs(target, exist_ok=True)
        os.chmod(target, member.mode & 0o777)
        return 1
    if target == root or not (member.isreg() or member.issym() or member.islnk()):
        return 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.unlink(target)
    if member.issym():
        os.symlink(member.linkname, target)
    elif member.islnk():
        os.link(place(root, member.linkname), target, follow_symlinks=False)
    else:
        write(tar, member, target)
    return 1


def place(root: str, name: str) -> str:
    """Where a member goes. Raises `Refused` for a name that leads out of the root, by itself or through a link."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    target = os.path.join(root, *parts)
    parent = os.path.realpath(os.path.dirname(target)) if parts else root
    if ".." in parts or not (parent + "/").startswith(root.rstrip("/") + "/"):
        raise Refused("bad_path", f"member {name[:256]!r} leads out of the folder")
    return target


def write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: str) -> None:
    """A regular file with its content, mode and time."""
    content = tar.extractfile(member)
    with open(target, "wb") as file:
        while content is not None:
            block = content.read(_COPY)
            if not block:
                break
            file.write(block)
        os.fchmod(file.fileno(), member.mode & 0o777)
    os.utime(target, (member.mtime, member.mtime))


def remove(path: str, _fd: int) -> Dict[str, Any]:
    """Remove a folder and all in it, however deep.

    Folders inside folders are first moved up beside each other, so that no path gets long and no recursion deep.
    """
    count = 0
    os.chmod(path, 0o700)
    pending = [path]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in list(entries):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                count += 1
                pending.append(entry.path if folder == path else moved(entry.path, path, count))
        if folder != path:
            os.rmdir(folder)
    os.rmdir(path)
    return {}


def moved(source: str, top: str, count: int) -> str:
    """A folder moved up to the top, under a name that is free."""
    target = os.path.join(top, f".removing-{os.getpid()}-{count}")
    os.rename(source, target)
    return target
