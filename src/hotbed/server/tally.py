"""What one request moved and how it was answered, counted on its way through ASGI."""

from __future__ import annotations

import time

from starlette.types import Message, Receive, Send

HUNG_UP = 499  # no status was sent: the client went away first
_JSON = (b"content-type", b"application/json")


class Tally:
    """The receive and send of one request, counted."""

    __slots__ = ("begun_ns", "received", "sent", "status", "whole", "_receive", "_send")

    def __init__(self, receive: Receive, send: Send) -> None:
        self.begun_ns = time.time_ns()
        self.received = 0
        self.sent = 0
        self.status = HUNG_UP
        self.whole = False  # all of its body has been received
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """The next message from the client."""
        message = await self._receive()
        body = message.get("body")
        if body:
            self.received += len(body)
        if message["type"] == "http.request":
            self.whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """A message to the client."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def answer(self, status: int, body: bytes) -> None:
        """All of an answer in JSON: what `Response` would send, without making one."""
        self.status = status
        self.sent += len(body)
        headers = [(b"content-length", b"%d" % len(body)), _JSON]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})
