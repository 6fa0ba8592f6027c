"""Frames out, messages in, whatever the pieces they come in."""

from __future__ import annotations

import os
import struct

import pytest

from hotbed.errors import NotFound, ProtocolError
from hotbed.sdk.websocket import BINARY, CLOSE, MESSAGE_LIMIT, PING, TEXT, SocketReader, frame, masked, upgrade_request

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"


def opened() -> SocketReader:
    """A reader past the upgrade."""
    reader = SocketReader()
    reader.feed(ANSWER)
    return reader


def unmasked(kind: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as a server sends it."""
    first = (0x80 if final else 0) | kind
    if len(data) < 126:
        return struct.pack("!BB", first, len(data)) + data
    if len(data) < 1 << 16:
        return struct.pack("!BBH", first, 126, len(data)) + data
    return struct.pack("!BBQ", first, 127, len(data)) + data


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 1_000_003])
def test_a_frame_is_masked_and_says_its_length(size: int) -> None:
    """In the shortest of three forms."""
    data = os.urandom(size)
    made = frame(BINARY, data)
    at = 2 if size < 126 else 4 if size < 1 << 16 else 10

    assert made[0] == 0x82 and made[1] & 0x80
    assert len(made) == at + 4 + size
    assert masked(made[at + 4 :], made[at : at + 4]) == data


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
def test_messages_survive_any_split(step: int) -> None:
    """A stream has no boundaries of its own."""
    sent = [(TEXT, b"hello"), (BINARY, b""), (BINARY, os.urandom(70_000)), (CLOSE, b"\x03\xe8")]
    stream = ANSWER + b"".join(unmasked(kind, data) for kind, data in sent)
    reader, got = SocketReader(), []
    for start in range(0, len(stream), step):
        reader.feed(stream[start : start + step])
        while (message := reader.message()) is not None:
            got.append(message)

    assert got == sent


def test_fragments_are_put_together_around_a_ping() -> None:
    """As the standard allows."""
    reader = opened()
    reader.feed(unmasked(BINARY, b"one ", final=False) + unmasked(PING, b"?") + unmasked(0, b"two"))

    assert [reader.message(), reader.message(), reader.message()] == [(PING, b"?"), (BINARY, b"one two"), None]


def test_a_refusal_is_the_error_it_tells() -> None:
    """However it arrives."""
    body = b'{"code": "not_found", "message": "no such thing"}'
    reader = SocketReader()
    reader.feed(b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:10])

    with pytest.raises(NotFound, match="no such thing"):
        reader.feed(body[10:])


@pytest.mark.parametrize("data", [b"\x82\x81aaaab", b"\xf2\x00", struct.pack("!BBQ", 0x82, 127, MESSAGE_LIMIT + 1)])
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    """Masked by a server, with bits that nobody agreed on, or too large."""
    reader = opened()
    reader.feed(data)

    with pytest.raises(ProtocolError):
        reader.message()


def test_a_message_of_too_many_fragments_is_refused() -> None:
    """They add up."""
    reader = opened()
    part = unmasked(BINARY, bytes(32 << 20), final=False)
    reader.feed(part + part.replace(b"\x02", b"\x00", 1) + unmasked(0, b"x"))

    with pytest.raises(ProtocolError, match="large"):
        reader.message()


def test_an_endless_head_is_refused() -> None:
    """It would be held for ever."""
    with pytest.raises(ProtocolError, match="head"):
        SocketReader().feed(b"HTTP/1.1 101 x\r\n" + b"a: b\r\n" * 20_000)


def test_the_end_of_the_connection_is_an_error_of_its_own() -> None:
    """No message was its last."""
    with pytest.raises(ConnectionResetError):
        opened().feed(b"")


def test_the_upgrade_asks_for_nothing_but_a_websocket() -> None:
    """With the client's own lines in it."""
    head = upgrade_request("/v1/x", b"Host: node\r\n")

    assert head.startswith(b"GET /v1/x HTTP/1.1\r\nHost: node\r\nUpgrade: websocket\r\n")
    assert head.endswith(b"Sec-WebSocket-Version: 13\r\n\r\n") and b"Extensions" not in head
