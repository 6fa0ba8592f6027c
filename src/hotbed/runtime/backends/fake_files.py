"""The fake's files: what stat says, errors in our terms, and trees as tar streams."""

from __future__ import annotations

import os
import stat
import tarfile
from typing import Any

from hotbed.errors import BadPath, Error, FileDenied, FileMissing, InvalidRequest, NoSpace, NotAFile


def describe(path: str) -> dict[str, Any]:
    """What stat says of a path."""
    found = os.lstat(path)
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link"}
    return {
        "name": os.path.basename(path),
        "type": kinds.get(stat.S_IFMT(found.st_mode), "other"),
        "size": found.st_size,
        "perm": stat.S_IMODE(found.st_mode),
        "mtime_ns": found.st_mtime_ns,
    }


def file_error(error: OSError, path: str) -> Error:
    """An operating system error in our terms."""
    if isinstance(error, FileNotFoundError):
        return FileMissing(f"no file {path}")
    if isinstance(error, IsADirectoryError):
        return NotAFile(f"{path} is a directory")
    if isinstance(error, PermissionError):
        return FileDenied(f"{path}: permission denied")
    if isinstance(error, NotADirectoryError):
        return BadPath(f"{path}: a part of it is not a directory")
    return NoSpace(f"{path}: {error.strerror}")


def write_tar(path: str, target: int) -> None:
    """A tar of a directory's contents, or of one file. Blocks; owns the descriptor."""
    try:
        with os.fdopen(target, "wb") as file, tarfile.open(fileobj=file, mode="w|") as tar:
            tar.add(path, arcname="." if os.path.isdir(path) else os.path.basename(path))
    except BrokenPipeError:
        pass  # nobody reads it to its end


def read_tar(path: str, source: int) -> int:
    """Extract a tar; how many members. Blocks; owns the descriptor."""
    os.makedirs(path, exist_ok=True)
    count = 0
    try:
        with os.fdopen(source, "rb") as file, tarfile.open(fileobj=file, mode="r|") as tar:
            if hasattr(tarfile, "data_filter"):  # came with Python 3.11.4
                tar.extraction_filter = tarfile.data_filter
            for member in tar:
                tar.extract(member, path)
                count += 1
    except (tarfile.TarError, OSError) as error:
        raise InvalidRequest(f"not a tar stream: {error}") from None
    return count
