"""A browser's DevTools socket, with something in its place that speaks as one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Message, Ping, Pong, Request, TextMessage

from hotbed.server.routes import devtools
from tests.unit.server.asking import make_sandbox, served
from tests.unit.server.routes.test_tunnels import inside, minted
from tests.unit.server.socketing import OpenSocket

PATH = "/devtools/browser/6b1f"
ABOUT = {"Browser": "Chrome/1", "webSocketDebuggerUrl": f"ws://10.0.0.1:1{PATH}"}


class StandIn:
    """Answers `/json/version`, and on its socket says back what it hears, taken apart, after a question of its own."""

    def __init__(self, about: object = ABOUT) -> None:
        self.about = about if isinstance(about, bytes) else json.dumps(about).encode()
        self.asked: list[tuple[str, str]] = []
        self.ponged = False
        self.heard: Any = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        lines = head.decode().split("\r\n")
        host = next(line[6:] for line in lines if line.lower().startswith("host: "))
        self.asked.append((lines[0].split()[1], host.split(":")[0]))
        if lines[0].startswith("GET /json/version "):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.about) + self.about)
            await reader.read()
            return
        talk = WSConnection(ConnectionType.SERVER)
        data = head
        while data:
            talk.receive_data(data)
            for event in talk.events():
                writer.write(self.answer(talk, event))
            data = await reader.read(65536)

    def answer(self, talk: WSConnection, event: object) -> bytes:
        """What goes back."""
        if isinstance(event, Request):
            hello = TextMessage("hello")  # right behind the handshake
            return talk.send(AcceptConnection()) + talk.send(hello) + talk.send(Ping(b"there?"))
        if isinstance(event, Pong):
            self.ponged = True
        if isinstance(event, Message) and event.data in ("bye", b"bye"):
            return talk.send(CloseConnection(1000))
        if isinstance(event, BytesMessage):
            return talk.send(event)
        if not isinstance(event, TextMessage):
            return b""
        self.heard += event.data
        if not event.message_finished:
            return b""
        said, self.heard, half = self.heard, "", len(self.heard) // 2
        return talk.send(TextMessage(said[:half], message_finished=False)) + talk.send(TextMessage(said[half:]))


async def opened(app: Any, port: int) -> OpenSocket:
    """A client's socket by an address for DevTools."""
    url = await minted(app, await make_sandbox(app), port, protocol="cdp")
    assert url.endswith("&protocol=cdp")
    return OpenSocket(app, url.removeprefix("ws://h"))


def test_messages_pass_whole_in_both_directions() -> None:
    """The client takes the address for the browser's own; the browser is called by a name that it answers to."""

    async def run() -> None:
        browser = StandIn()
        async with served() as (node, app), inside(browser.serve) as port:
            socket = await opened(app, port)
            assert [await socket.hear(), await socket.hear()] == ["accept", "hello"]
            long = json.dumps({"id": 1, "method": "é" * 100_000}, ensure_ascii=False)
            for said, heard in ((long, json.loads(long)), (b"\x00\xff", b"\x00\xff"), ("[]", "[]")):
                socket.say(said)
                assert await socket.hear() == heard
            assert browser.ponged
            assert browser.asked == [("/json/version", "localhost"), (PATH, "localhost")]
            socket.say("bye")
            assert await socket.hear() == "close"
            await socket.done()
            assert [session.tunnels for session in node.sessions] == [0]

    asyncio.run(run())


def test_a_client_that_leaves_ends_the_browsers_side() -> None:
    """Nothing is left of it."""

    async def run() -> None:
        async with served() as (node, app), inside(StandIn().serve) as port:
            socket = await opened(app, port)
            assert await socket.hear() == "accept"
            socket.hang_up()
            await socket.done()
            assert [session.tunnels for session in node.sessions] == [0]

    asyncio.run(run())


@pytest.mark.parametrize(
    "about",
    [
        b"",
        b"no json",
        b'{"x":' * 10_000,
        {"Browser": "Chrome/1"},
        {"webSocketDebuggerUrl": 7},
        {"webSocketDebuggerUrl": "ws://h"},
        {"webSocketDebuggerUrl": "ws://h/a b\r\nX: y"},
        {"webSocketDebuggerUrl": "ws://h/" + "x" * 1000},
        {"webSocketDebuggerUrl": "ws://[h/"},
        b"x" * 70_000,
    ],
)
def test_what_is_no_browser_is_refused_before_the_client_is_let_in(about: object) -> None:
    """Whatever it says instead."""

    async def run() -> tuple[int, str]:
        async with served() as (_, app), inside(StandIn(about).serve) as port:
            return await (await opened(app, port)).refusal()

    assert asyncio.run(run()) == (502, "port_closed")


def test_what_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may accept and be silent for ever."""
    monkeypatch.setattr(devtools, "ANSWER_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def run() -> tuple[int, str]:
        async with served() as (_, app), inside(silent) as port:
            return await (await opened(app, port)).refusal()

    assert asyncio.run(run()) == (502, "port_closed")


def test_a_message_without_end_is_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a client could send as well is kept in memory."""
    monkeypatch.setattr(devtools, "BODY_LIMIT", 1000)

    async def run() -> None:
        async with served() as (_, app), inside(StandIn().serve) as port:
            socket = await opened(app, port)
            assert [await socket.hear(), await socket.hear()] == ["accept", "hello"]
            socket.say("x" * 5000)
            assert "MiB" in str(await socket.hear())
            await socket.done()

    asyncio.run(run())
