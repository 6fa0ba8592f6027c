"""Asking an ASGI application without a network: enough of a server for one request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

from hotbed.node.node import Node
from hotbed.server.app import make_app
from tests.unit.node.nodes import running_node


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        """It as JSON."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """It as JSON lines."""
        return [json.loads(line) for line in self.body.splitlines() if line]


class Asked:
    """One request on its way. `hang_up` is the client going away."""

    def __init__(self, method: str, url: str, body: bytes | Sequence[bytes], headers: dict[str, str]) -> None:
        path, _, query = url.partition("?")
        self.answer = Answer()
        self.changed = asyncio.Condition()
        self._gone = asyncio.Event()
        chunks = [body] if isinstance(body, bytes) else list(body)
        self._incoming: list[Message] = [
            {"type": "http.request", "body": chunk, "more_body": index + 1 < len(chunks)}
            for index, chunk in enumerate(chunks)
        ]
        if isinstance(body, bytes):
            headers = {"content-length": str(len(body)), **headers}
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }

    def hang_up(self) -> None:
        """The client goes away."""
        self._gone.set()

    async def receive(self) -> Message:
        """What the application receives."""
        if self._incoming:
            return self._incoming.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """What the application sends."""
        if message["type"] == "http.response.start":
            self.answer.status = message["status"]
            self.answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.answer.chunks.append(message["body"])
        async with self.changed:
            self.changed.notify_all()

    async def wait_chunks(self, count: int) -> None:
        """Wait until so many chunks have come."""
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: len(self.answer.chunks) >= count), 5)


async def ask(app: ASGIApp, method: str, url: str, body: Any = b"", *, headers: dict[str, str] | None = None) -> Answer:
    """One request and its whole answer. A body that is not bytes goes as JSON; a list of bytes, in chunks."""
    if not isinstance(body, bytes) and not (isinstance(body, list) and body and isinstance(body[0], bytes)):
        body = json.dumps(body).encode()
    asked = Asked(method, url, body, headers or {})
    await asyncio.wait_for(app(asked.scope, asked.receive, asked.send), 20)
    return asked.answer


@asynccontextmanager
async def served(**policy: Any) -> AsyncIterator[tuple[Node, ASGIApp]]:
    """A node and its application."""
    async with running_node(**policy) as node:
        yield node, make_app(node)


async def make_sandbox(app: ASGIApp, **fields: Any) -> str:
    """A sandbox's id."""
    answer = await ask(app, "POST", "/v1/sandboxes", {"template": "python", **fields})
    assert answer.status == 201, answer.body
    return str(answer.json["id"])
