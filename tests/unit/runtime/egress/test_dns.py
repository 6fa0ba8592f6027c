"""Questions in, answers out."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest

from hotbed.runtime.egress import dns


def question(name: str, kind: int = dns.A, *, flags: int = 0x0100, count: int = 1) -> bytes:
    """A query as programs send it."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    return struct.pack("!HHHHHH", 7, flags, count, 0, 0, 0) + labels + struct.pack("!HH", kind, 1)


def test_a_question_is_read() -> None:
    """Names have no case."""
    query = dns.parse(question("A.Example"))

    assert query is not None and (query.id, query.name, query.kind) == (7, "a.example", dns.A)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0" * 12,
        question("a.b", flags=0x8000),
        question("a.b", flags=0x2800),
        question("a.b", count=2),
        question("a.b")[:-3],
        question("a.b").replace(b"\1a", b"\x3fa"),
        question("a.b")[:12] + b"\xc0\x0c\0\1\0\1",
        question("a" * 60) + b"x" * 500,
    ],
)
def test_what_is_no_query_is_none(message: bytes) -> None:
    """Answers, several questions, pointers, what is cut short or too long."""
    assert dns.parse(message) is None


def test_an_answer_repeats_its_question() -> None:
    """And carries the addresses of the kind that was asked for."""
    query = dns.parse(question("a.example", dns.AAAA))
    assert query is not None

    reply = dns.answer(query, dns.NO_ERROR, [ip_address("fd00::7")])

    assert reply[:2] == b"\0\7" and reply[2] & 0x80 and query.question in reply
    assert reply.endswith(b"\0\x10" + ip_address("fd00::7").packed)


def test_a_refusal_has_no_records() -> None:
    """Only its code."""
    query = dns.parse(question("a.example"))
    assert query is not None

    assert dns.answer(query, dns.NO_SUCH_NAME)[3] & 15 == dns.NO_SUCH_NAME
