"""What a connection says in its first bytes: a TLS hello with a name, a line of HTTP, or something else. Pure."""

from __future__ import annotations

import re
import struct

from hotbed.egress.decisions import Speech
from hotbed.egress.entries import normal_name

PEEK_LIMIT = 1 << 14
_HTTP_START = re.compile(rb"[A-Z]{1,20}( [^\r\n]*)?")
_HTTP_LINE = re.compile(rb"[A-Z]{1,20} [^\r\n]* HTTP/1\.[01]\r?\n")
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0


def missing(data: bytes) -> int:
    """How many bytes there must be before `speech_of` can tell; 0 when it can already."""
    if data[:1] == bytes([_HANDSHAKE]):
        if len(data) < 5:
            return 5
        size = 5 + int(struct.unpack_from("!H", data, 3)[0])
        return size if len(data) < size <= PEEK_LIMIT else 0
    undecided = b"\n" not in data and _HTTP_START.fullmatch(data) is not None and len(data) < PEEK_LIMIT
    return len(data) + 1 if undecided else 0


def speech_of(data: bytes) -> Speech:
    """Which of the three it is."""
    if data[:2] == b"\x16\x03":
        return "tls"
    return "http" if _HTTP_LINE.match(data) else "opaque"


def server_name(data: bytes) -> str | None:
    """The name in a TLS hello (RFC 6066); empty when it has none, None when it is no whole hello with a sane one."""
    try:
        return _server_name(data)
    except (struct.error, IndexError, ValueError):
        return None


def _server_name(data: bytes) -> str:
    size = struct.unpack_from("!H", data, 3)[0]
    hello = data[5 : 5 + size]
    if len(hello) < size or hello[0] != _CLIENT_HELLO or int.from_bytes(hello[1:4], "big") + 4 > size:
        raise ValueError("no whole hello in one record")
    at = 4 + 2 + 32  # handshake head, version, random
    at += 1 + hello[at]
    at += 2 + struct.unpack_from("!H", hello, at)[0]
    at += 1 + hello[at]
    if at >= len(hello):
        return ""
    end = at + 2 + struct.unpack_from("!H", hello, at)[0]
    at += 2
    while at + 4 <= end:
        kind, length = struct.unpack_from("!HH", hello, at)
        if kind == _SERVER_NAME:
            return _name_in(hello[at + 4 : at + 4 + length])
        at += 4 + length
    return ""


def _name_in(extension: bytes) -> str:
    """Exactly one name of type host_name: what else there is, two readers could read differently."""
    total, kind, length = struct.unpack_from("!HBH", extension, 0)
    if kind != 0 or total != 3 + length or len(extension) != 2 + total:
        raise ValueError("not one host name")
    return normal_name(extension[5:].decode("ascii"))
