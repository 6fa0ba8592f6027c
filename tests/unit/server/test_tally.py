"""What one request moved."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from hotbed.server.tally import HUNG_UP, Tally


def test_bytes_both_ways_and_the_status_are_counted() -> None:
    """In as many pieces as they come."""
    incoming: list[Message] = [
        {"type": "http.request", "body": b"abc", "more_body": True},
        {"type": "http.request", "body": b"de", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        pass

    async def scenario() -> None:
        tally = Tally(receive, send)
        assert tally.status == HUNG_UP
        for _ in range(3):
            await tally.receive()
        await tally.send({"type": "http.response.start", "status": 201, "headers": []})
        await tally.send({"type": "http.response.body", "body": b"1234"})
        await tally.send({"type": "http.response.body"})
        assert (tally.received, tally.sent, tally.status) == (5, 4, 201)

    asyncio.run(scenario())
