"""A sandbox's files: streamed in and out, so that size costs no memory; and whole trees as tar streams.

What a sandbox gives us to read or write is a descriptor of a regular file that the runtime has checked. Small transfers
are read and written on the loop, since a page of tmpfs takes microseconds; from `BLOCK` on they go to a thread.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

from starlette.responses import Response

from hotbed.errors import Error, InvalidRequest, NoSpace, NotAFile, RangeUnsatisfiable, TooLarge
from hotbed.node import records
from hotbed.node.node import Node
from hotbed.node.records import PUT_LIMIT
from hotbed.node.sessions import Session
from hotbed.runtime.base import Box
from hotbed.server.connection import Emit, Stream
from hotbed.server.operation import Call
from hotbed.server.pipes import read_pipe, write_pipe
from hotbed.server.ranges import Span, parse_range, unsatisfied
from hotbed.wire.checks import require_path
from hotbed.wire.sandboxes import FileAnswer, FileEntry, FileWritten, TreeWritten

BLOCK = 1 << 20
MAX_MODE = 0o7777
FILE_TYPES = ("file", "dir", "link")


async def put_file(node: Node, call: Call) -> FileWritten:
    """Write a file with the body's bytes. One that could not be written whole is removed."""
    session = node.sessions.get(call.segment("id"))
    path, box = path_of(call), session.held.box
    with session.in_use():
        mode = mode_of(call)
        fd, _ = await box.open(path, "w", mode)
        kept = Kept()
        try:
            size = await _write_all(fd, kept.passing(call.request.stream()))
        except BaseException:  # a client that hangs up must not leave half a file either
            await _remove_quietly(box, path)
            raise
        finally:
            os.close(fd)
    record_put(node, session, kept, form="file", path=path, mode=mode)
    return FileWritten(path=path, size=size)


async def get_file(node: Node, call: Call) -> Response:
    """A file's bytes, as many as it had when it was opened, or one range of them."""
    session = node.sessions.get(call.segment("id"))
    with session.in_use():
        fd, size = await session.held.box.open(path_of(call), "r")
    try:
        check_size(fd, size)
        asked = parse_range(call.request.headers.get("range"), size)
    except RangeUnsatisfiable as error:
        os.close(fd)
        return unsatisfied(error, size)
    except Error:
        os.close(fd)
        raise
    span = asked or Span(0, size)

    async def produce(emit: Emit) -> None:
        try:
            with session.in_use():
                await _read_all(fd, span, emit)
        finally:
            os.close(fd)

    part = {"content-range": f"bytes {span.start}-{span.end - 1}/{size}"} if asked is not None else {}
    headers = {"content-length": str(span.end - span.start), "accept-ranges": "bytes", **part}
    return Stream(produce, media_type="application/octet-stream", headers=headers, status=206 if part else 200)


async def head_file(node: Node, call: Call) -> Response:
    """What a file is, without its bytes: its size, its mode in octal, and when it was last written."""
    session = node.sessions.get(call.segment("id"))
    with session.in_use():
        found = file_entry(dict(await session.held.box.files("stat", path_of(call))))
    if found.type != "file":
        raise NotAFile(f"{path_of(call)} is not a regular file")
    headers = {
        "content-length": str(found.size),
        "accept-ranges": "bytes",
        "last-modified": formatdate(found.mtime, usegmt=True),
        "x-hotbed-mode": f"{found.mode:o}",
    }
    return Response(headers=headers, media_type="application/octet-stream")


async def file_operation(node: Node, call: Call) -> FileAnswer:
    """stat, list, remove, mkdir."""
    session = node.sessions.get(call.segment("id"))
    with session.in_use():
        found = await session.held.box.files(call.body.operation, call.body.path)
    path = call.body.path
    if call.body.operation in ("remove", "mkdir"):
        record_put(node, session, Kept(), form=call.body.operation, path=path, mode=0o755)
    if call.body.operation == "stat":
        return FileAnswer(path=path, entry=file_entry({"name": os.path.basename(path), **found}))
    listed = found.get("entries", ())
    entries = tuple(map(file_entry, listed)) if isinstance(listed, (list, tuple)) else ()
    return FileAnswer(path=path, entries=entries, truncated=found.get("truncated") is True)


async def put_tree(node: Node, call: Call) -> TreeWritten:
    """Extract the body, a tar stream, below a path."""
    session = node.sessions.get(call.segment("id"))
    path = path_of(call)
    reader, writer = os.pipe()
    with session.in_use():
        unpacking = node.nursery.start(session.held.box.unpack(path, reader), name=f"unpack-{session.id}")
        try:
            kept = Kept()
            await write_pipe(writer, kept.passing(call.request.stream()), until=unpacking)
            files = await unpacking
        finally:
            unpacking.cancel()
    record_put(node, session, kept, form="tree", path=path, mode=0o755)
    return TreeWritten(path=path, files=files)


async def get_tree(node: Node, call: Call) -> Stream:
    """A path and what is below it as a tar stream. A stream that was cut short lacks the end-of-archive blocks."""
    session = node.sessions.get(call.segment("id"))
    with session.in_use():
        reader = await session.held.box.pack(path_of(call))

    async def produce(emit: Emit) -> None:
        with session.in_use():
            async for chunk in read_pipe(reader):
                await emit(chunk)

    return Stream(produce, media_type="application/x-tar")


def check_size(fd: int, size: int) -> None:
    """Refuse a sparse file that is larger than the disk it is on: a terabyte of nothing would fill the client's."""
    disk = os.fstatvfs(fd)
    if size > disk.f_blocks * disk.f_frsize > 0:
        raise TooLarge(
            f"a file of {size} bytes on a disk of {disk.f_blocks * disk.f_frsize} is nearly all holes",
            hint="what it holds can be read by an exec",
        )


def path_of(call: Call) -> str:
    """The `path` of the query."""
    path = call.request.query_params.get("path", "")
    require_path(path)
    return path


def mode_of(call: Call) -> int:
    """The `mode` of the query, in octal as chmod takes it."""
    text = call.request.query_params.get("mode", "644")
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= MAX_MODE:
        raise InvalidRequest(f"mode {text[:16]!r} is not an octal file mode", hint="such as 644 or 755")
    return mode


def file_entry(found: Any) -> FileEntry:
    """What a sandbox says of a path. It may say anything, so nothing is taken that is not of its type."""
    told = found if isinstance(found, dict) else {}
    name, kind, numbers = told.get("name"), told.get("type"), [told.get(key) for key in ("size", "perm", "mtime_ns")]
    size, mode, mtime_ns = (number if type(number) is int else 0 for number in numbers)
    return FileEntry(
        name=name.encode("utf-8", "backslashreplace").decode() if isinstance(name, str) else "",
        type=kind if kind in FILE_TYPES else "other",
        size=size,
        mode=mode,
        mtime=mtime_ns / 1e9,
    )


class Kept:
    """What passes on its way into a sandbox, held for the ledger as long as it is small enough."""

    def __init__(self) -> None:
        self.size = 0
        self._chunks: list[bytes] = []

    async def passing(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same chunks."""
        async for chunk in chunks:
            self.size += len(chunk)
            if self.size <= PUT_LIMIT:
                self._chunks.append(chunk)
            else:
                self._chunks.clear()
            yield chunk

    @property
    def data(self) -> bytes | None:
        """All of it, or None when it was too large."""
        return b"".join(self._chunks) if self.size <= PUT_LIMIT else None


def record_put(node: Node, session: Session, kept: Kept, *, form: str, path: str, mode: int) -> None:
    """Note what was put into a sandbox or taken away in it, so that what runs there later can be run again."""
    node.note(
        records.of_put(
            session.id,
            session.template.spec.name,
            session.template.digest,
            put_id=f"put_{secrets.token_hex(8)}",
            put={"form": form, "path": path, "mode": mode, "size": kept.size},
            data=kept.data,
            at=time.time(),
        ),
        session.held.lease,
    )


async def _write_all(fd: int, chunks: AsyncIterator[bytes]) -> int:
    size = 0
    async for block in _blocks(chunks):
        if len(block) < BLOCK:
            _write_block(fd, block)
        else:
            await asyncio.to_thread(_write_block, fd, block)
        size += len(block)
    return size


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body in blocks of `BLOCK` or a little more, and a smaller last one."""
    held, size = [], 0
    async for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _write_block(fd: int, block: bytes) -> None:
    left = memoryview(block)
    try:
        while left:
            left = left[os.write(fd, left) :]
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoSpace("the sandbox's disk is full", hint="raise limits.disk_mib") from None
        raise


async def _read_all(fd: int, span: Span, emit: Emit) -> None:
    offset = span.start
    while offset < span.end:
        wanted = min(BLOCK, span.end - offset)
        small = span.end - span.start <= BLOCK
        block = os.pread(fd, wanted, offset) if small else await asyncio.to_thread(os.pread, fd, wanted, offset)
        if not block:
            raise EOFError(f"the file shrank to {offset} bytes while it was read")
        await emit(block)
        offset += len(block)


async def _remove_quietly(box: Box, path: str) -> None:
    """What went wrong already is what the caller must hear of."""
    try:
        await box.files("remove", path)
    except Error:
        pass
