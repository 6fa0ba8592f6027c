"""The node's end of a judge's channel: a job goes out, frames come back, each within a deadline.

The judge runs users' test scripts, so what it sends is bounded and typed like what a sandbox sends; frames that are
none end the channel, and whoever waits hears of it as a failure of ours, never as a verdict.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

from hotbed.guest.frames import Header
from hotbed.runtime.link import Link, close_all

_BODY_LIMIT = 1 << 20
_HEADER_LIMIT = 16 << 20  # a verdict lists every check with its message
_QUEUE_HIGH = 8  # frames; a judge that sends more than are taken waits


class JudgeChannel:
    """What is said with one judge."""

    def __init__(self, sock: socket.socket) -> None:
        self._frames: asyncio.Queue[Header | None] = asyncio.Queue()
        self.ended = ""
        self._link = Link(
            sock, body_limit=_BODY_LIMIT, header_limit=_HEADER_LIMIT, on_frame=self._on_frame, on_end=self._on_end
        )

    async def send(self, header: Header, body: bytes = b"", fds: Sequence[int] = (), *, timeout_s: float) -> None:
        """Send a frame, and close the descriptors that went with it. A dead judge is heard of in `receive`."""
        try:
            sent = self._link.post(header, body, fds) if self._link.is_open() else None
            if sent is not None:
                await asyncio.wait_for(sent, timeout_s)
        finally:
            close_all(fds)

    async def receive(self, timeout_s: float) -> Header | None:
        """The next frame; None when the judge is gone or has let the deadline pass."""
        if timeout_s <= 0:
            self.ended = self.ended or "it did not answer in time"
            return None
        if self._frames.qsize() <= _QUEUE_HIGH:
            self._link.resume()
        if not self._frames.empty():
            return self._frames.get_nowait()
        try:
            return await asyncio.wait_for(self._frames.get(), timeout_s)
        except asyncio.TimeoutError:
            self.ended = self.ended or "it did not answer in time"
            return None

    def close(self) -> None:
        """Let go of it. Idempotent."""
        self._link.end("it is not needed any more")

    def _on_frame(self, header: Header, body: bytes, fds: list[int]) -> None:
        close_all(fds)
        self._frames.put_nowait(header)
        if self._frames.qsize() > _QUEUE_HIGH:
            self._link.pause()

    def _on_end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self._frames.put_nowait(None)


def take_fd(sock: socket.socket) -> int:
    """A socket's descriptor, owned by the caller from now on."""
    fd = sock.detach()
    os.set_blocking(fd, True)
    return fd
