"""From an accepted connection to one outside, or a refusal."""

from __future__ import annotations

import asyncio
import struct

import pytest

from hotbed.runtime.egress import doors, sockets
from hotbed.runtime.egress.targets import Refused
from tests.support.wards import Echo, ask, knock, local, ward


def test_connect_to_what_is_allowed_is_relayed() -> None:
    """Whatever is spoken, where the port is none of the web's."""

    async def act() -> tuple[bytes, bytes]:
        async with Echo() as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            with knock(found) as sock:
                first = await ask(sock, b"CONNECT a.org:%d HTTP/1.1\r\n\r\n" % echo.port)
                second = await ask(sock, b"hello")
            await found.close()
            return first, second

    first, second = asyncio.run(act())

    assert first.startswith(b"HTTP/1.1 200 ") and second == b"HELLO"


@pytest.mark.parametrize(
    "target", [b"b.org:80", b"127.0.0.1:80", b"[::ffff:127.0.0.1]:80", b"10.0.0.1:80", b"169.254.169.254:80"]
)
def test_connect_to_anything_else_is_refused_in_words(target: bytes) -> None:
    """Nothing is dialled."""

    async def act() -> tuple[bytes, int]:
        found = ward(local(80))
        with knock(found) as sock:
            answer = await ask(sock, b"CONNECT %s HTTP/1.1\r\n\r\n" % target)
        await found.close()
        return answer, found.tally.take()["denied"]

    answer, denied = asyncio.run(act())

    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n") and b"egress policy" in answer
    assert denied == 1


def test_a_server_that_speaks_first_is_heard() -> None:
    """The client need not say anything."""

    async def act() -> bytes:
        async with Echo(b"welcome") as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            with knock(found) as sock:
                await ask(sock, b"CONNECT a.org:%d HTTP/1.1\r\n\r\n" % echo.port)
                heard = await asyncio.wait_for(sockets.receive(sock, 100), 5)
            await found.close()
            return heard

    assert asyncio.run(act()) == b"welcome"


def socks(host: bytes, port: int, command: int = 1) -> bytes:
    """A SOCKS5 greeting and request."""
    return b"\5\1\0\5%c\0\3%c%s" % (command, len(host), host) + struct.pack("!H", port)


@pytest.mark.parametrize(("host", "command", "code"), [(b"a.org", 1, 0), (b"b.org", 1, 2), (b"a.org", 3, 7)])
def test_socks_connects_and_nothing_else(host: bytes, command: int, code: int) -> None:
    """No datagrams, and no host that is not allowed."""

    async def act() -> bytes:
        async with Echo() as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            with knock(found) as sock:
                answer = await ask(sock, socks(host, echo.port, command))
                while len(answer) < 12:
                    answer += await asyncio.wait_for(sockets.receive(sock, 100), 5)
            await found.close()
            return answer

    answer = asyncio.run(act())

    assert answer[:2] == b"\5\0" and answer[3] == code


def test_http_through_the_proxy_is_held_to_each_request() -> None:
    """A second request for another host is no longer the first one's connection."""

    async def act() -> tuple[bytes, bytes]:
        async with Echo() as echo:
            found = ward(local(echo.port), a_org="127.0.0.1")
            url = b"http://a.org:%d" % echo.port
            head = b"GET %s/ HTTP/1.1\r\nHost: a.org:%d\r\n\r\n" % (url, echo.port)
            with knock(found) as sock:
                first = await ask(sock, head)
            with knock(found) as sock:
                second = await ask(sock, b"GET http://b.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n")
            await found.close()
            return first, second

    first, second = asyncio.run(act())

    assert first.startswith(b"HTTP/1.1 400 ") or first == b""  # an echo is no HTTP server
    assert second.startswith(b"HTTP/1.1 403 ")


def test_a_sandbox_reaches_nothing_on_its_own_loopback() -> None:
    """Where a door happens to listen."""

    async def act() -> tuple[bytes | str, int]:
        found = ward({"allow": ["a.org"]})
        with knock(found, doors.dialled) as sock:
            try:
                answer: bytes | str = await asyncio.wait_for(sockets.receive(sock, 10), 5)
            except ConnectionResetError:
                answer = "reset"
        await found.close()
        return answer, found.tally.take()["denied"]

    assert asyncio.run(act()) == ("reset", 1)


@pytest.mark.parametrize(
    "head", [b"CONNECT \r\n\r\n", b"CONNECT a.org HTTP/1.1\r\n\r\n", b"CONNECT a.org:0 HTTP/1.1\r\n\r\n"]
)
def test_a_connect_that_cannot_be_read_ends_it(head: bytes) -> None:
    """With nothing said."""

    async def act() -> bytes:
        found = ward("open")
        with knock(found) as sock:
            try:
                return await ask(sock, head)
            except ConnectionResetError:
                return b"reset"
            finally:
                await found.close()

    assert asyncio.run(act()) == b"reset"


def test_a_refusal_is_an_answer() -> None:
    """A program prints it."""
    answer = doors.no_in_http(Refused("no such host"))

    assert answer.startswith(b"HTTP/1.1 403 ") and answer.endswith(b"no such host\n")
