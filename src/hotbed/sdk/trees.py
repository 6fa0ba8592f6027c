"""Directories as tar streams: one packed piece by piece, one unpacked as if it were hostile.

What comes out of a sandbox was written by code nobody trusts. Unpacking therefore makes nothing but directories,
regular files, and links that stay below the target; names are resolved before use, files are made new (never opened
through an existing link), links come last, and set-id bits and owners are dropped.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from hotbed.errors import BadPath, Error, FileDenied, InvalidRequest, ProtocolError, TooLarge
from hotbed.sdk.streams import exactly

_CUT = "the sandbox ended while it was sent, or could not read all of a file"
_END = 2 * tarfile.BLOCKSIZE  # an archive ends with two blocks of zeros; one that was cut short does not
_REASONS: dict[str, type[Error]] = {"bad_path": BadPath, "denied": FileDenied, "too_large": TooLarge}


def pack_tree(source: str | os.PathLike[str]) -> Iterator[bytes]:
    """A local directory's content as a tar stream. Links are sent as links; devices, pipes and sockets are left out."""
    top = os.fspath(source)
    if not os.path.isdir(top):
        raise InvalidRequest(f"{top} is not a directory", hint="send a file with upload()")
    return _pack(top)


def _pack(top: str) -> Iterator[bytes]:
    for directory, folders, names in os.walk(top, onerror=_refuse):
        for name in sorted(folders + names):
            path = os.path.join(directory, name)
            yield from _member(path, os.path.relpath(path, top))
        folders.sort()
    yield bytes(_END)


def _refuse(error: OSError) -> None:
    raise error  # os.walk would leave the folder out


def _member(path: str, name: str) -> Iterator[bytes]:
    found = os.lstat(path)
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            info.size = os.fstat(file.fileno()).st_size
            yield info.tobuf(tarfile.PAX_FORMAT)
            yield from exactly(file, info.size, path)
        yield bytes(-info.size % tarfile.BLOCKSIZE)
        return
    else:
        return
    yield info.tobuf(tarfile.PAX_FORMAT)


def new_spool() -> BinaryIO:
    """Where an archive waits until all of it is here."""
    return cast("BinaryIO", tempfile.TemporaryFile())


def unpack_tree(spool: BinaryIO, target: str | os.PathLike[str]) -> tuple[str, ...]:
    """Make the archive's content below a local directory. The names of members that were left out."""
    top = os.path.realpath(target)
    os.makedirs(top, exist_ok=True)
    _check_whole(spool)
    skipped: list[str] = []
    links: list[tarfile.TarInfo] = []
    spool.seek(0)
    try:
        with tarfile.open(fileobj=spool, mode="r:") as archive:
            for member in archive:
                if member.issym():
                    links.append(member)
                elif not _unpack_plain(archive, member, top):
                    skipped.append(member.name)
    except (tarfile.TarError, EOFError) as reason:
        raise ProtocolError(f"the sandbox sent an archive that cannot be read: {reason}") from None
    return (*skipped, *_unpack_links(links, top))


def _check_whole(spool: BinaryIO) -> None:
    size = spool.seek(0, os.SEEK_END)
    spool.seek(max(0, size - _END))
    if size < _END or any(spool.read(_END)):
        raise _reason_told(spool) or ProtocolError("the archive was cut short", hint=_CUT)


def _reason_told(spool: BinaryIO) -> Error | None:
    """Why the sandbox did not send all, if it says so in the last member. It may say anything."""
    spool.seek(0)
    told = ""
    try:
        with tarfile.open(fileobj=spool, mode="r:") as archive:
            for member in archive:
                told = member.pax_headers.get("HOTBED.failed", "")
    except (tarfile.TarError, EOFError):
        return None
    code, _, message = told.partition(" ")
    return _REASONS.get(code, ProtocolError)(message[:1024]) if message else None


def _unpack_plain(archive: tarfile.TarFile, member: tarfile.TarInfo, top: str) -> bool:
    """Make a directory or a regular file; False when the member is neither or leads out."""
    place = _place(member.name, top)
    if place is None or member.issparse():
        return False
    if member.isdir():
        return _make_directory(place, member.mode)
    if not member.isreg() or place == top or os.path.isdir(place):
        return False
    content = archive.extractfile(member)
    assert content is not None, "a regular member has content"
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.lexists(place):
        os.unlink(place)
    with open(place, "xb") as file:
        shutil.copyfileobj(content, file, 256 << 10)
    os.chmod(place, (member.mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)
    return True


def _make_directory(place: str, mode: int) -> bool:
    if os.path.lexists(place) and (os.path.islink(place) or not os.path.isdir(place)):
        return False
    os.makedirs(place, exist_ok=True)
    os.chmod(place, (mode & 0o777) | stat.S_IRWXU)
    return True


def _unpack_links(links: list[tarfile.TarInfo], top: str) -> list[str]:
    """Make the links; the names of those left out.

    A link may lead elsewhere once another one exists (`a -> b/..` with `b -> .`): all are looked at again at the end.
    """
    places = {member.name: _unpack_link(member, top) for member in links}
    skipped = [name for name, place in places.items() if place is None]
    made = {name: place for name, place in places.items() if place is not None}
    while strays := [name for name, place in made.items() if not _below(os.path.realpath(place), top)]:
        for name in strays:
            os.unlink(made.pop(name))
        skipped += strays
    return skipped


def _unpack_link(member: tarfile.TarInfo, top: str) -> str | None:
    place = _place(member.name, top)
    if place is None or os.path.isabs(member.linkname) or os.path.lexists(place):
        return None
    leads_to = os.path.realpath(os.path.join(os.path.dirname(place), member.linkname))
    if not _below(leads_to, top):
        return None
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.symlink(member.linkname, place)
    return place


def _place(name: str, top: str) -> str | None:
    """Where a member goes: below `top` after every link on the way is resolved, or nowhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        return None
    if not parts:
        return top
    parent = os.path.realpath(os.path.join(top, *parts[:-1]))
    return os.path.join(parent, parts[-1]) if _below(parent, top) else None


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")
