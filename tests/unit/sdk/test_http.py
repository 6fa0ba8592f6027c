"""The reader of answers, fed in every way in which a socket may cut them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.errors import ProtocolError
from hotbed.sdk.http import HEAD_LIMIT, ResponseReader, chunk, request_head

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"he") + b"3;x=y\r\nllo\r\n" + b"0\r\nA: b\r\n\r\n"
)
CLOSED = b"HTTP/1.1 200 OK\r\n\r\nhello"


def read(data: bytes, cuts: list[int] | None = None, *, end: bool = False) -> tuple[ResponseReader, bytes]:
    """A reader that got the data in pieces, and the body it gave."""
    reader, body, last = ResponseReader(), b"", 0
    for cut in [*sorted(cuts or []), len(data)]:
        if cut > last:
            reader.feed(data[last:cut])
            body += reader.take()
            last = cut
    if end:
        reader.feed(b"")
    return reader, body


@given(st.lists(st.integers(0, len(CHUNKED)), max_size=12))
def test_chunked_answer_reads_the_same_however_it_is_cut(cuts: list[int]) -> None:
    """Sockets cut where they like."""
    reader, body = read(CHUNKED, cuts)

    assert (reader.status, body, reader.complete, reader.reusable) == (200, b"hello", True, True)


@given(st.lists(st.integers(0, len(LENGTH)), max_size=12))
def test_answer_with_a_length_reads_the_same_however_it_is_cut(cuts: list[int]) -> None:
    """The same for the common framing."""
    reader, body = read(LENGTH, cuts)

    assert (body, reader.complete, reader.reusable) == (b"hello", True, True)


def test_answer_without_framing_ends_with_the_connection() -> None:
    """And that connection cannot be used again."""
    reader, body = read(CLOSED, end=True)

    assert (body, reader.complete, reader.reusable) == (b"hello", True, False)


@pytest.mark.parametrize("data", [LENGTH[:-1], CHUNKED[:-1], LENGTH[:10], b""])
def test_answer_that_is_cut_off_is_a_broken_connection(data: bytes) -> None:
    """Half an answer is not an answer."""
    with pytest.raises(ConnectionResetError):
        read(data, end=True)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"x" * (HEAD_LIMIT + 1),
    ],
)
def test_what_is_not_http_is_named(data: bytes) -> None:
    """A wrong URL leads to all kinds of servers."""
    with pytest.raises(ProtocolError):
        read(data)


def test_informational_answers_announce_the_real_one() -> None:
    """100 Continue is not the answer."""
    reader, body = read(b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH)

    assert (reader.status, body) == (200, b"hello")


def test_empty_answer_is_complete_at_once() -> None:
    """204 has no body, whatever its headers say."""
    reader, _ = read(b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n")

    assert reader.complete


@pytest.mark.parametrize("data", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", LENGTH + b"x"])
def test_connection_that_cannot_be_trusted_is_not_kept(data: bytes) -> None:
    """One that the node closes, or that holds bytes nobody asked for."""
    reader, _ = read(data)

    assert not reader.reusable


def test_request_says_how_its_body_is_framed() -> None:
    """A length where it is known, chunks where it is not."""
    assert b"Content-Length: 3\r\n\r\n" in request_head("POST", "/", b"Host: x\r\n", 3)
    assert b"Transfer-Encoding: chunked\r\n\r\n" in request_head("POST", "/", b"Host: x\r\n", None)
