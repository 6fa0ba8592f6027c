"""An answer's head and body in one write.

uvicorn writes the head as soon as it is told of it, and the body when that comes. On a Unix socket each write wakes the
client: it would get up for the head, find no body and lie down again. So a head waits for what is written next, or for
the loop's next turn, whichever comes first.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hotbed.server.patience import PatientHttp

_HEAD = b"HTTP/1.1 "


class JoinedHttp(PatientHttp):
    """HTTP on a connection whose writes are joined."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Serve this connection."""
        super().connection_made(transport)
        self.transport = JoinedWrites(transport, self.loop)  # type: ignore[assignment]  # all that is used of one


class JoinedWrites:
    """A transport that holds a head back for a moment. Everything else is the transport's own."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, in the order of the calls."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD):
            self._held = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Close once everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)
