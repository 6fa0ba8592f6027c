"""Opening WebSockets of an ASGI application without a network."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message


class OpenSocket:
    """One WebSocket from the client's side. Messages are bytes, or JSON text."""

    def __init__(self, app: ASGIApp, url: str, headers: dict[str, str] | None = None, **scope: Any) -> None:
        path, _, query = url.partition("?")
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._incoming.put_nowait({"type": "websocket.connect"})
        self.scope = {
            "type": "websocket",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
            "extensions": {"websocket.http.response": {}},
            **scope,
        }
        self.task = asyncio.ensure_future(app(self.scope, self._incoming.get, self.sent.put))

    def say(self, message: bytes | str | dict[str, Any]) -> None:
        """Send a message."""
        if isinstance(message, bytes):
            self._incoming.put_nowait({"type": "websocket.receive", "bytes": message})
        else:
            text = message if isinstance(message, str) else json.dumps(message)
            self._incoming.put_nowait({"type": "websocket.receive", "text": text})

    def hang_up(self) -> None:
        """Go away."""
        self._incoming.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def hear(self) -> Any:
        """What comes next: bytes, JSON data, text, or the type of any other message."""
        message = await asyncio.wait_for(self.sent.get(), 10)
        if message["type"] != "websocket.send":
            return message["type"].partition(".")[2]
        if message.get("bytes") is not None:
            return message["bytes"]
        text = message["text"]
        return json.loads(text) if text[:1] == "{" else text

    async def refusal(self) -> tuple[int, str]:
        """The status and code of the answer that refused the upgrade."""
        start = await asyncio.wait_for(self.sent.get(), 10)
        assert start["type"] == "websocket.http.response.start", start
        body = await asyncio.wait_for(self.sent.get(), 10)
        await self.done()
        return start["status"], json.loads(body["body"])["code"]

    async def done(self) -> None:
        """Wait until the application has let go of it."""
        await asyncio.wait_for(self.task, 10)
