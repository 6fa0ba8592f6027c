"""Just enough of DNS (RFC 1035) to answer the lookups of a sandbox. Pure.

Only what the broker itself resolves is ever asked outside: a query is read for its one question and never passed on, so
nothing that a program packs into one leaves the machine unless its policy allows the very name.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hotbed.egress.addresses import Address

A, AAAA, ANY_CLASS = 1, 28, 1
NO_ERROR, FORMAT_ERROR, SERVER_FAILED, NO_SUCH_NAME, REFUSED = 0, 1, 2, 3, 5
MESSAGE_LIMIT = 512
TTL_S = 30
_HEAD = struct.Struct("!HHHHHH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question. `question` is its bytes, which an answer repeats."""

    id: int
    flags: int
    name: str
    kind: int
    question: bytes


def parse(message: bytes) -> Query | None:
    """The question of a message; None if it is no query with exactly one."""
    if len(message) < _HEAD.size or len(message) > MESSAGE_LIMIT:
        return None
    number, flags, questions, _, _, _ = _HEAD.unpack_from(message)
    if flags & 0x8000 or flags & 0x7800 or questions != 1:  # an answer; another opcode than QUERY
        return None
    labels, at = [], _HEAD.size
    while at < len(message) and message[at]:
        size = message[at]
        if size > 63 or at + 1 + size > len(message):
            return None
        labels.append(message[at + 1 : at + 1 + size])
        at += 1 + size
    end = at + 5
    if not labels or end > len(message):
        return None
    kind, klass = struct.unpack_from("!HH", message, at + 1)
    name = b".".join(labels).decode("latin-1").lower()
    known = klass == ANY_CLASS and all(b"." not in label for label in labels)
    return Query(id=number, flags=flags, name=name, kind=kind, question=message[_HEAD.size : end]) if known else None


def answer(query: Query, code: int, addresses: Sequence[Address] = ()) -> bytes:
    """An answer with some addresses of the kind that was asked for."""
    flags = 0x8080 | (query.flags & 0x0100) | code
    head = _HEAD.pack(query.id, flags, 1, len(addresses), 0, 0)
    records = b"".join(
        b"\xc0\x0c" + struct.pack("!HHIH", query.kind, ANY_CLASS, TTL_S, len(address.packed)) + address.packed
        for address in addresses
    )
    return head + query.question + records
