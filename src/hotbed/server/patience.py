"""How long and how large a request may be in coming, before anything is done for it.

uvicorn waits for ever, and holds what comes. So a client that sends a head byte by byte, or one without end, or half a
body and then nothing, would keep a descriptor and memory for as long as it likes. Here a head has so much time in all
and so many bytes, and a body so much time between two pieces of it. A connection that is kept and silent between two
requests is none of this: clients keep theirs for an hour.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
HEAD_S = 30.0
BODY_S = 60.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PatientHttp(HttpToolsProtocol):
    """HTTP on a connection whose client has limited time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Serve this connection. Its first request is due."""
        super().connection_made(transport)
        self._in_head, self._ended = True, False
        self._head_size = 0
        self._since_s = self.loop.time()
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(HEAD_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come, and see whether it may go on so."""
        self._ended = False
        was_idle = self._in_head and not self._head_size
        super().data_received(data)
        if self._in_head:
            self._head_size = 0 if self._ended else self._head_size + len(data)
            if self._head_size > HEAD_BYTES:
                return self._refuse(_TOO_LARGE)
        if was_idle or not self._in_head:
            self._since_s = self.loop.time()
        if self._is_due() and self._timer is None:
            self._timer = self.loop.call_later(self._patience_s(), self._look)

    def on_headers_complete(self) -> None:
        """A body may follow."""
        self._in_head, self._head_size = False, 0
        self._stop()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._in_head = self._ended = True
        super().on_message_complete()

    def _is_due(self) -> bool:
        """Whether the client owes us the rest of something."""
        return not self._in_head or self._head_size > 0

    def _patience_s(self) -> float:
        return HEAD_S if self._in_head else BODY_S

    def _look(self) -> None:
        """Whether it takes too long. Who is not read from cannot send."""
        self._timer = None
        first = self.cycle is None
        if not (self._is_due() or first) or self.transport.is_closing():
            return
        left = self._since_s + self._patience_s() - self.loop.time()
        if left <= 0 and not self.flow.read_paused:
            self._refuse(_TOO_SLOW)
        else:
            self._timer = self.loop.call_later(max(left, 0.05), self._look)

    def _refuse(self, answer: bytes) -> None:
        """Say why, if the client may still hear it, and hang up."""
        self._stop()
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering and not self.transport.is_closing():
            self.transport.write(answer)
        self.transport.close()

    def _stop(self) -> None:
        timer: Any = self._timer
        self._timer = None
        if timer is not None:
            timer.cancel()
