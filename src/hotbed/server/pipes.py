"""Pipes to and from a sandbox, driven by the event loop. The functions own the descriptors they are given."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

CHUNK = 1 << 18


async def read_pipe(fd: int) -> AsyncIterator[bytes]:
    """What a pipe yields until its other end is closed."""
    os.set_blocking(fd, False)
    try:
        while True:
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                await _wait(fd, writable=False)
                continue
            if not chunk:
                return
            yield chunk
    finally:
        os.close(fd)


async def write_pipe(fd: int, source: AsyncIterator[bytes], *, until: asyncio.Task[int]) -> None:
    """Write everything that the source yields, or as much as `until`, who reads, wanted of it."""
    os.set_blocking(fd, False)
    try:
        async for chunk in source:
            if until.done():
                continue  # the rest of a request must still be read, or its answer is never seen
            await _write_chunk(fd, memoryview(chunk), until)
    finally:
        os.close(fd)


async def _write_chunk(fd: int, left: memoryview, until: asyncio.Task[int]) -> None:
    while left and not until.done():
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await _wait(fd, writable=True)
        except BrokenPipeError:
            await asyncio.wait({until})


async def _wait(fd: int, *, writable: bool) -> None:
    """Wait until a pipe can be written or read, or its other end is closed."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if writable else (loop.add_reader, loop.remove_reader)
    add(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(fd)
