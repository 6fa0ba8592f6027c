"""What first bytes tell."""

from __future__ import annotations

import ssl

import pytest

from hotbed.runtime.egress import sniffing


def hello(name: str | None) -> bytes:
    """The first flight of Python's own TLS client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        talk.do_handshake()
    return outgoing.read()


def test_the_name_of_a_hello_is_read() -> None:
    """As a TLS client says it."""
    assert sniffing.speech_of(hello("a.example.org")) == "tls"
    assert sniffing.server_name(hello("a.example.org")) == "a.example.org"


def test_a_hello_without_a_name_has_none() -> None:
    """Which is not the same as one that cannot be read."""
    assert sniffing.server_name(hello(None)) == ""


def test_a_broken_hello_is_told_from_one_without_a_name() -> None:
    """Cut short, or with two names: two readers could read them differently."""
    whole = hello("a.example.org")
    doubled = whole.replace(b"\0\x12\0\x10\0\0\x0da.example.org", b"\0\x12\0\x10\0\0\x0ca.example.or?")

    assert sniffing.server_name(whole[:-5]) is None
    assert sniffing.server_name(doubled) is None
    assert sniffing.server_name(b"\x16\x03\x01\0\5hello") is None


@pytest.mark.parametrize(
    ("data", "speech"),
    [
        (b"GET / HTTP/1.1\r\n", "http"),
        (b"M-SEARCH * HTTP/1.1\r\n", "opaque"),
        (b"EHLO me\r\n", "opaque"),
        (b"PRI * HTTP/2.0\r\n", "opaque"),
        (b"SSH-2.0-x\r\n", "opaque"),
        (b"", "opaque"),
    ],
)
def test_what_is_http_says_so_in_its_first_line(data: bytes, speech: str) -> None:
    """Other protocols begin with words, too."""
    assert sniffing.speech_of(data) == speech


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        (b"\x16", 5),
        (b"\x16\x03\x01\0\x05", 10),
        (b"\x16\x03\x01\0\x05hello", 0),
        (b"GET /", 6),
        (b"GET / HTTP/1.1\r\n", 0),
        (b"\x00", 0),
        (b"A" * 40, 0),
        (b"\x16\x03\x01\xff\xff", 0),
    ],
)
def test_no_more_is_waited_for_than_is_needed(data: bytes, missing: int) -> None:
    """Who sends a byte a minute is timed out by the caller."""
    assert sniffing.missing(data) == missing
