"""Tunnels and the addresses that open them, over the fake backend, whose inside is this host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotbed.node import sessions
from hotbed.server.routes import tunnels
from tests.unit.server.asking import ask, make_sandbox, served
from tests.unit.server.keyed import TIERS, doorway
from tests.unit.server.socketing import OpenSocket

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Give back what comes."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def inside(serve: Serve = echo) -> AsyncIterator[int]:
    """A server's port."""

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(whole, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def minted(app: Any, name: str, port: int, protocol: str = "tcp", **headers: str) -> str:
    """The path of an address."""
    answer = await ask(
        app,
        "POST",
        f"/v1/sandboxes/{name}/connect-url",
        {"port": port, "protocol": protocol},
        headers={"host": "h", **headers},
    )
    assert answer.status == 200, answer.body
    return str(answer.json["url"])


def test_bytes_go_both_ways_until_the_client_leaves() -> None:
    """By an address that needs nothing else."""

    async def run() -> None:
        async with served() as (node, app), inside() as port:
            name = await make_sandbox(app)
            url = await minted(app, name, port)
            assert url.startswith("ws://h/v1/sandboxes/")
            socket = OpenSocket(app, url.removeprefix("ws://h"))
            assert await socket.hear() == "accept"
            for word in (b"one", b"two"):
                socket.say(word)
                assert await socket.hear() == word
            assert node.sessions.get(name).tunnels == 1
            socket.hang_up()
            await socket.done()
            assert node.sessions.get(name).tunnels == node.sessions.get(name).active == 0

    asyncio.run(run())


def test_the_end_of_the_inside_closes_it_after_its_last_byte() -> None:
    """As the published client expects."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last")

    async def run() -> list[Any]:
        async with served() as (_, app), inside(serve) as port:
            socket = OpenSocket(app, f"/v1/sandboxes/sbx_{await make_sandbox(app)}/connect?port={port}")
            heard = [await socket.hear() for _ in range(3)]
            await socket.done()
            return heard

    assert asyncio.run(run()) == ["accept", b"last", "close"]


def test_each_direction_ends_for_itself_when_the_client_knows_how() -> None:
    """A question ends, and its answer comes after that."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])

    async def run() -> list[Any]:
        async with served() as (_, app), inside(serve) as port:
            socket = OpenSocket(app, f"/v1/sandboxes/{await make_sandbox(app)}/connect?port={port}&half_close=1")
            assert await socket.hear() == "accept"
            socket.say(b"abc")
            socket.say("eof")
            heard = [await socket.hear(), await socket.hear()]
            socket.hang_up()
            await socket.done()
            return heard

    assert asyncio.run(run()) == [b"cba", "eof"]


def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published client ends a tunnel in which nothing comes for 30 seconds."""
    monkeypatch.setattr(tunnels, "SILENCE_S", 0.02)

    async def run() -> None:
        async with served() as (_, app), inside() as port:
            socket = OpenSocket(app, f"/v1/sandboxes/{await make_sandbox(app)}/connect?port={port}")
            assert [await socket.hear() for _ in range(4)] == ["accept", b"", b"", b""]
            socket.hang_up()
            await socket.done()

    asyncio.run(run())


def test_silence_is_not_filled_over_tls_while_the_client_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads and writes one TLS object from two threads."""
    monkeypatch.setattr(tunnels, "SILENCE_S", 0.02)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def run() -> int:
        async with served() as (_, app), inside(serve) as port:
            url = f"/v1/sandboxes/{await make_sandbox(app)}/connect?port={port}"
            socket = OpenSocket(app, url, scheme="wss")
            assert await socket.hear() == "accept"
            for _ in range(10):
                socket.say(b"x")
                await asyncio.sleep(0.01)
            heard = socket.sent.qsize()
            socket.hang_up()
            await socket.done()
            return heard

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (400, "invalid_request")),
        ("port=0", (400, "invalid_request")),
        ("port=99999999999999", (400, "invalid_request")),
        ("port=80&protocol=udp", (400, "invalid_request")),
        ("port=1", (502, "port_closed")),
        ("port=80&t=nonsense", (401, "unauthorized")),
    ],
)
def test_what_cannot_be_opened_is_refused_before_it_is_accepted(query: str, expected: tuple[int, str]) -> None:
    """The published client looks at the status line only."""

    async def run() -> tuple[int, str]:
        async with served() as (_, app):
            return await OpenSocket(app, f"/v1/sandboxes/{await make_sandbox(app)}/connect?{query}").refusal()

    assert asyncio.run(run()) == expected


def test_an_address_opens_what_it_names_for_anybody_and_nothing_else(tmp_path: Path) -> None:
    """No key goes with it, and none is needed."""

    async def run() -> None:
        async with doorway(tmp_path) as way, inside() as port, inside() as other:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json
            body = {"port": port}
            answer = await way.ask("acme", "POST", f"/v1/sandboxes/{made['id']}/connect-url", body, host="h")
            target = str(answer.json["url"]).removeprefix("ws://h")
            socket = OpenSocket(way.door, target)
            assert await socket.hear() == "accept"
            socket.hang_up()
            await socket.done()
            wrong = target.replace(f"port={port}", f"port={other}")
            assert await OpenSocket(way.door, wrong).refusal() == (401, "unauthorized")
            plain = target.partition("&t=")[0]
            assert await OpenSocket(way.door, plain).refusal() == (401, "unauthorized")
            bob = {"authorization": f"Bearer {way.keys['bob']}"}
            assert await OpenSocket(way.door, plain, bob).refusal() == (404, "not_found")
            refused = await way.ask("bob", "POST", f"/v1/sandboxes/{made['id']}/connect-url", body)
            assert refused.json["code"] == "not_found"

    asyncio.run(run())


def test_a_tier_without_ingress_opens_nothing(tmp_path: Path) -> None:
    """Neither by an address nor by its key, and the text names the tiers that do."""
    tiers = {"small": {**TIERS["small"], "ingress": False}}

    async def run() -> None:
        async with doorway(tmp_path, tiers=tiers) as way:
            made = (await way.ask("acme", "POST", "/v1/sandboxes", {"template": "python"})).json
            answer = await way.ask("acme", "POST", f"/v1/sandboxes/{made['id']}/connect-url", {"port": 80})
            assert (answer.status, answer.json["code"]) == (403, "tier_limit") and "pro" in answer.json["message"]
            key = {"authorization": f"Bearer {way.keys['acme']}"}
            url = f"/v1/sandboxes/{made['id']}/connect?port=80"
            assert await OpenSocket(way.door, url, key).refusal() == (403, "tier_limit")

    asyncio.run(run())


def test_tunnels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds two descriptors of the node."""
    monkeypatch.setattr(sessions, "TUNNELS_LIMIT", 1)

    async def run() -> None:
        async with served() as (_, app), inside() as port:
            url = f"/v1/sandboxes/{await make_sandbox(app)}/connect?port={port}"
            first = OpenSocket(app, url)
            assert await first.hear() == "accept"
            assert await OpenSocket(app, url).refusal() == (429, "at_capacity")
            first.hang_up()
            await first.done()

    asyncio.run(run())


def test_behind_a_proxy_that_does_tls_the_address_says_so() -> None:
    """It is told to the one who asks, and to nobody else."""

    async def run() -> str:
        async with served() as (_, app):
            return await minted(app, await make_sandbox(app), 80, **{"x-forwarded-proto": "https"})

    assert asyncio.run(run()).startswith("wss://h/")


@pytest.mark.parametrize(
    ("public", "begins"),
    [("https://box.example", "wss://box.example/v1/"), ("http://box.example:81/hot/", "ws://box.example:81/hot/v1/")],
)
def test_the_address_is_the_public_one_where_there_is_one(public: str, begins: str) -> None:
    """A proxy may give us a Host that nobody else can reach."""

    async def run() -> str:
        async with served(public_url=public) as (_, app):
            return await minted(app, await make_sandbox(app), 80)

    assert asyncio.run(run()).startswith(begins + "sandboxes/")
