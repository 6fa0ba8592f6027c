"""Local files as uploads and downloads of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from hotbed.errors import InvalidRequest
from hotbed.sdk.calls import Sink

PIECE = 256 << 10


@contextmanager
def opened_source(source: str | os.PathLike[str] | BinaryIO) -> Iterator[tuple[Iterator[bytes], int | None]]:
    """The pieces of a local path or open file, and their total length where it is known."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            yield exactly(file, length, os.fspath(source)), length
    else:
        yield _pieces(source), None


def exactly(file: BinaryIO, length: int, name: str) -> Iterator[bytes]:
    """`length` bytes of a file. What it grows by meanwhile is left out; a file that shrinks is an error."""
    left = length
    while left:
        piece = file.read(min(PIECE, left))
        if not piece:
            raise InvalidRequest(f"{name} shrank by {left} bytes while it was sent", hint="send a file that is at rest")
        left -= len(piece)
        yield piece


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        if not isinstance(piece, bytes):
            raise InvalidRequest("the file to upload was opened as text", hint='open it with mode "rb"')
        yield piece


@contextmanager
def opened_target(target: str | os.PathLike[str] | BinaryIO) -> Iterator[Sink]:
    """Where a download goes. A path appears when the download is whole, and not at all when it fails."""
    if not isinstance(target, (str, os.PathLike)):
        yield target
        return
    path = os.fspath(target)
    part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.urandom(4).hex()}.part")
    try:
        with open(part, "xb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        if os.path.lexists(part):
            os.unlink(part)
        raise
