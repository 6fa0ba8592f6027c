"""The boundary of a WebSocket: who is let in, and what a failure becomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Scope

from hotbed.errors import InvalidRequest, NotFound
from hotbed.node.node import Node
from hotbed.server.connection import Gone
from hotbed.server.sockets import SocketCall, SocketOperation, refuse_socket
from tests.unit.server.socketing import OpenSocket

NODE: Any = None


def opened(handler: Any) -> OpenSocket:
    """A socket that a handler serves."""
    app: ASGIApp = SocketOperation(handler, NODE)
    return OpenSocket(app, "/x?a=1", path_params={"id": "7"})


def test_a_handler_is_given_the_socket_and_it_is_closed_after() -> None:
    """With what the address holds."""

    async def handler(node: Node, call: SocketCall) -> None:
        await call.socket.accept()
        await call.socket.send_bytes(call.segment("id").encode() + call.socket.query["a"].encode())
        await call.socket.send_event({"event": str(await call.socket.message())})

    async def run() -> list[Any]:
        socket = opened(handler)
        socket.say("hello")
        heard = [await socket.hear() for _ in range(4)]
        await socket.done()
        return heard

    assert asyncio.run(run()) == ["accept", b"71", {"event": "hello"}, "close"]


def test_a_failure_before_it_is_accepted_is_an_answer() -> None:
    """Like any request's."""

    async def handler(node: Node, call: SocketCall) -> None:
        raise NotFound("no")

    async def run() -> tuple[int, str]:
        return await opened(handler).refusal()

    assert asyncio.run(run()) == (404, "not_found")


def test_a_failure_after_it_is_accepted_is_the_last_message() -> None:
    """In the words of a stream's error."""

    async def handler(node: Node, call: SocketCall) -> None:
        await call.socket.accept()
        raise InvalidRequest("what")

    async def run() -> list[Any]:
        socket = opened(handler)
        return [await socket.hear() for _ in range(3)]

    accepted, told, closed = asyncio.run(run())
    assert (accepted, told["event"], told["error"]["code"], closed) == ("accept", "error", "invalid_request", "close")


def test_a_client_that_is_gone_is_told_nothing() -> None:
    """There is nobody."""

    async def handler(node: Node, call: SocketCall) -> None:
        await call.socket.accept()
        await call.socket.message()

    async def run() -> int:
        socket = opened(handler)
        assert await socket.hear() == "accept"
        socket.hang_up()
        await socket.done()
        return socket.sent.qsize()

    assert asyncio.run(run()) == 0
    assert issubclass(Gone, Exception)


@pytest.mark.parametrize("fails", [False, True])
def test_a_client_that_hung_up_while_it_was_told_is_no_failure(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    """uvicorn raises an OSError then; each hang-up was logged as unforeseen, with a traceback."""

    async def handler(node: Node, call: SocketCall) -> None:
        await call.socket.accept()
        if fails:
            raise InvalidRequest("nobody hears this")

    async def run() -> None:
        async def send(message: Message) -> None:
            if message["type"] != "websocket.accept":
                raise OSError

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        scope: Scope = {"type": "websocket", "query_string": b"", "headers": [], "path_params": {}}
        await SocketOperation(handler, NODE)(scope, receive, send)

    asyncio.run(run())
    assert caplog.records == []


def test_a_path_without_a_socket_says_so() -> None:
    """Not as a crash."""

    async def run() -> tuple[int, str]:
        return await OpenSocket(refuse_socket, "/nowhere").refusal()

    assert asyncio.run(run()) == (404, "not_found")
