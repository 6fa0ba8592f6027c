"""An environment directory as a tar that is the same bytes for the same content, and back.

The name of a directory is the SHA-256 of its tar, so times, owners and the order of directory listings must not show in
it: members are sorted, modes are 0755 or 0644, everything else is zero. Caches and version control are left out. What
cannot mean the same in a worker (a link that leads outside, a socket, a device) is refused by name rather than lost.

`unpack` reads what somebody else may have packed, and makes nothing but directories, regular files and links that stay
inside. The first member that is anything else ends it.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from hotbed.errors import BadEnvDir

ENTRY = "env.py"
CHECK_PLAN = "check.json"  # of `hotbed env check`; it holds the gold answers, so it is never sent
SIZE_LIMIT = 1 << 30
FILES_LIMIT = 50_000
LEFT_OUT = frozenset(
    {"__pycache__", ".git", ".hg", ".svn", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A directory as a tar in an anonymous file."""

    digest: str
    files: int
    size: int
    tar: IO[bytes]


def pack(directory: str | os.PathLike[str]) -> Packed:
    """The tar of an environment directory. Raises `BadEnvDir`."""
    top = Path(directory)
    if not top.is_dir():
        raise BadEnvDir(f"env_dir {str(directory)!r} is not a directory", hint="`hotbed env init DIR` makes one")
    if not (top / ENTRY).is_file():
        raise BadEnvDir(f"{top} has no {ENTRY}", hint=f"{ENTRY} calls serve(reset=..., step=...)")
    sink: IO[bytes] = TemporaryFile()
    try:
        files = _write(top, sink)
        size = sink.seek(0, os.SEEK_END)
        return Packed(digest=_digest(sink), files=files, size=size, tar=sink)
    except BaseException:
        sink.close()
        raise


def _write(top: Path, sink: IO[bytes]) -> int:
    count, size = 0, 0
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _walk(top):
            info = _member(top, path)
            count, size = count + 1, size + info.size
            if count > FILES_LIMIT or size > SIZE_LIMIT:
                raise BadEnvDir(
                    f"{top} holds over {FILES_LIMIT} files or {SIZE_LIMIT >> 20} MiB",
                    hint="an environment directory is sent to the node; keep data sets elsewhere",
                )
            if info.isreg():
                with path.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)
    return count


def _walk(top: Path) -> Iterator[Path]:
    for parent, directories, names in os.walk(top):
        directories[:] = sorted(name for name in directories if name not in LEFT_OUT)
        links = [name for name in directories if Path(parent, name).is_symlink()]
        for name in sorted({*directories, *names}):
            if name not in LEFT_OUT and not name.endswith(".pyc") and Path(parent, name) != top / CHECK_PLAN:
                yield Path(parent, name)
        directories[:] = [name for name in directories if name not in links]


def _member(top: Path, path: Path) -> tarfile.TarInfo:
    name = path.relative_to(top).as_posix()
    found = path.lstat()
    info = tarfile.TarInfo(name)
    info.mode = 0o755 if stat.S_ISDIR(found.st_mode) or found.st_mode & 0o111 else 0o644
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
        if not _stays_inside(name, info.linkname):
            raise BadEnvDir(f"{path} is a link out of the directory", hint="copy what it points to")
    elif stat.S_ISREG(found.st_mode):
        info.size = found.st_size
    else:
        raise BadEnvDir(f"{path} is neither a file nor a directory nor a link")
    return info


def _stays_inside(name: str, target: str) -> bool:
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return not target.startswith("/") and landing != ".." and not landing.startswith("../")


def _digest(tar: IO[bytes]) -> str:
    tar.seek(0)
    found = hashlib.sha256()
    while chunk := tar.read(1 << 20):
        found.update(chunk)
    tar.seek(0)
    return found.hexdigest()


def unpack(tar: IO[bytes], target: Path) -> int:
    """Make the tar's members below a directory that is new; how many. Raises `BadEnvDir`."""
    target.mkdir(mode=0o755)
    count, size = 0, 0
    links: list[tarfile.TarInfo] = []
    try:
        with tarfile.open(fileobj=tar, mode="r:") as archive:
            for member in archive:
                count, size = count + 1, size + max(0, member.size)
                if count > FILES_LIMIT or size > SIZE_LIMIT:
                    raise BadEnvDir(f"an environment directory of over {FILES_LIMIT} files or {SIZE_LIMIT >> 20} MiB")
                if member.issym():
                    links.append(member)
                else:
                    _make(archive, member, target)
        for link in links:  # last, so that no member is made through one
            os.symlink(_checked_link(link), _place(link, target))
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise BadEnvDir(f"the environment directory's tar cannot be unpacked: {error}") from None
    if not (target / ENTRY).is_file():
        raise BadEnvDir(f"the environment directory has no {ENTRY}")
    return count


def _make(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    place = _place(member, target)
    if member.isdir():
        place.mkdir(mode=0o755)
        return
    content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        raise BadEnvDir(f"member {member.name[:64]!r} is neither a file nor a directory nor a link")
    mode = 0o755 if member.mode & 0o111 else 0o644
    with place.open("xb") as file:
        while chunk := content.read(1 << 20):
            file.write(chunk)
        os.fchmod(file.fileno(), mode)


def _checked_link(link: tarfile.TarInfo) -> str:
    if not _stays_inside(link.name, link.linkname):
        raise BadEnvDir(f"member {link.name[:64]!r} is a link out of the directory")
    return link.linkname


def _place(member: tarfile.TarInfo, target: Path) -> Path:
    parts = member.name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in member.name:
        raise BadEnvDir(f"member {member.name[:64]!r} has no plain name")
    return target.joinpath(*parts)
