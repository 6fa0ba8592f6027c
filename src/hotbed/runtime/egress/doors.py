"""What is behind each door: how a connection that was accepted inside becomes one outside, or a refusal.

A program that knows nothing of us dials what it likes, and arrives at `dialled`. One that was told of a proxy comes to
`proxied`, which speaks HTTP CONNECT, plain HTTP with whole URLs, and SOCKS5 on the same port. Both end in `converse`:
wait for the first bytes, see who they say they are for, decide, dial, relay. TLS to a host that the policy has read is
ended here (see `tls`), and what is inside goes the way of HTTP. Every wait has a deadline, and a sandbox
has a number of connections, so one that sends a byte a minute occupies its own places and nobody else's.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address

from hotbed.egress.addresses import plain, special_kind
from hotbed.egress.decisions import Target, Verdict, Way, judge_address, judge_name, settle
from hotbed.egress.policy import Policy
from hotbed.runtime.egress import sniffing, sockets, tls
from hotbed.runtime.egress.flow import Flow
from hotbed.runtime.egress.relay import relay
from hotbed.runtime.egress.targets import Refused, target_from
from hotbed.runtime.egress.ward import Ward
from hotbed.runtime.egress.web import Web

FIRST_BYTES_S = 30.0  # of a program that dials ahead of what it has to say
SERVER_FIRST_S = 0.3
_WEB_PORTS = (80, 443)
_NO_IN_TLS = b"\x15\x03\x03\x00\x02\x02\x31"  # a fatal alert: access_denied (RFC 8446, 6)
_SOCKS_DONE = b"\x05\x00\x00\x01\0\0\0\0\0\0"
_SOCKS_NO = b"\x05\x02\x00\x01\0\0\0\0\0\0"  # not allowed by ruleset (RFC 1928)
_SOCKS_ODD = b"\x05\x07\x00\x01\0\0\0\0\0\0"  # command not supported
_PROXY_HEAD = 1 << 14


async def dialled(ward: Ward, inner: socket.socket) -> None:
    """A program dialled an address."""
    address, port = sockets.meant_for(inner)
    target = ward.target_of(address, port)
    with _ending(inner):
        own = target.address is not None and special_kind(target.address) == "loopback"
        if own and not _before(ward.policy, target).allowed:
            ward.refuse("connect", target, "nothing listens there in the sandbox")
            sockets.reset(inner)
            return
        await converse(ward, inner, target, "connect")


async def proxied(ward: Ward, inner: socket.socket) -> None:
    """A program uses the proxy."""
    with _ending(inner):
        first = await _peek(inner, 1, FIRST_BYTES_S)
        if first[:1] == b"\x05":
            target = await asyncio.wait_for(_socks_target(ward, inner), FIRST_BYTES_S)
            await converse(ward, inner, target, "socks")
            return
        head = await asyncio.wait_for(_peek_head(inner), FIRST_BYTES_S)
        if not head.startswith(b"CONNECT "):
            await Web(ward, inner).serve(None)
            return
        target = _connect_target(head)
        verdict = _before(ward.policy, target)
        if not verdict.allowed:
            with Flow(ward, inner, "proxy") as flow:
                refusal = flow.refuse(target, verdict)
            await sockets.send(inner, no_in_http(refusal), FIRST_BYTES_S)
            return
        inner.recv(len(head))
        await sockets.send(inner, b"HTTP/1.1 200 Connection established\r\n\r\n")
        await converse(ward, inner, target, "proxy")


async def converse(ward: Ward, inner: socket.socket, target: Target, kind: str) -> None:
    """From the first bytes to the end of a connection whose target is known."""
    head = await _first_bytes(inner, target.port)
    speech = sniffing.speech_of(head)
    if speech == "http":
        await Web(ward, inner).serve(target)
        return
    said = sniffing.server_name(head) if speech == "tls" else ""
    if speech == "tls" and ward.recording is not None:
        said = said or target.name
    if said and ward.reads(said, target.port):
        await _read_inside(ward, inner, target, said)
        return
    if ward.recording is not None:
        way = Way(verdict=Verdict(allowed=False, reason="what is not HTTP cannot be recorded"))
    elif said is None:
        way = Way(verdict=Verdict(allowed=False, reason="a TLS hello that cannot be read"))
    else:
        way = settle(ward.policy, target, speech, said)
    with Flow(ward, inner, kind) as flow:
        try:
            outer = await flow.dial(target, way)
        except Refused:
            if speech == "tls":
                await sockets.send(inner, _NO_IN_TLS, FIRST_BYTES_S)
            raise
        with outer:
            await relay(inner, outer, ward.pipes, up=flow.count_up, down=flow.count_down)


async def _read_inside(ward: Ward, inner: socket.socket, target: Target, said: str) -> None:
    """TLS to a host that is read: it ends here, and each request in it is decided like any other."""
    assert ward.certificates is not None
    way = settle(ward.policy, target, "http", said)
    if not way.verdict.allowed:
        with Flow(ward, inner, "https") as flow:
            refusal = flow.refuse(Target(port=target.port, name=said, address=target.address), way.verdict)
        await sockets.send(inner, _NO_IN_TLS, FIRST_BYTES_S)
        raise refusal
    async with tls.plain(inner, await ward.certificates.context(said)) as clear:
        await Web(ward, clear, said).serve(target)


def no_in_http(refusal: Refused) -> bytes:
    """A refusal in words that end up in a program's output."""
    text = f"refused by this sandbox's egress policy: {refusal}\n".encode()
    head = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text


class _ending:
    """Whatever ends a conversation with a sandbox, its socket is closed, and what went wrong goes no further."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None:
            self._inner.close()
        else:
            sockets.reset(self._inner)
        return isinstance(error, (OSError, Refused, asyncio.TimeoutError, asyncio.CancelledError))


def _before(policy: Policy, target: Target) -> Verdict:
    """What can be said before the first bytes, which may bring a name that makes an address good."""
    if target.name:
        return judge_name(policy, target.name, target.port)
    assert target.address is not None
    verdict = judge_address(policy, target.address, target.port)
    if special_kind(target.address) or policy.mode in ("none", "open") or verdict.entry is not None:
        return verdict
    return Verdict(allowed=True, reason="")


async def _peek(inner: socket.socket, size: int, patience_s: float | None = None) -> bytes:
    """At least so much of what was sent, without taking it; less at its end."""
    while True:
        try:
            data = inner.recv(sniffing.PEEK_LIMIT, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            await sockets.readable(inner, patience_s)
            continue
        if len(data) >= size or not data:
            return data
        inner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        await sockets.readable(inner, patience_s)
        inner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        data = inner.recv(sniffing.PEEK_LIMIT, socket.MSG_PEEK)
        if len(data) < size:
            return data  # its end came first


async def _first_bytes(inner: socket.socket, port: int) -> bytes:
    """Enough to tell what it is; nothing where the server speaks first."""
    patience_s = FIRST_BYTES_S if port in _WEB_PORTS else SERVER_FIRST_S
    try:
        data = await _peek(inner, 1, patience_s)
    except asyncio.TimeoutError:
        if port in _WEB_PORTS:
            raise
        return b""
    if not sniffing.missing(data):
        return data
    return await asyncio.wait_for(_whole(inner, data), FIRST_BYTES_S)  # all of its waits together


async def _whole(inner: socket.socket, data: bytes) -> bytes:
    while (size := sniffing.missing(data)) and data:
        more = await _peek(inner, size)
        if len(more) < size:
            return more
        data = more
    return data


async def _peek_head(inner: socket.socket) -> bytes:
    """A request's head, still in the socket. Raises `Refused` for one without end."""
    data = await _peek(inner, 1)
    while b"\r\n\r\n" not in data:
        if len(data) >= _PROXY_HEAD:
            raise Refused("a request head without end")
        more = await _peek(inner, len(data) + 1)
        if len(more) <= len(data):
            raise Refused("it ended in its head")
        data = more
    return data[: data.index(b"\r\n\r\n") + 4]


def _connect_target(head: bytes) -> Target:
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3:
        raise Refused("a CONNECT that cannot be read")
    host, colon, port = words[1].rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Refused("a CONNECT without a port")
    return target_from(host, int(port))


async def _socks_target(ward: Ward, inner: socket.socket) -> Target:
    """SOCKS5 (RFC 1928) up to the answer, which comes before the first bytes: those tell the rest."""
    head = await _take(inner, 2)
    await _take(inner, head[1])
    await sockets.send(inner, b"\x05\x00")
    version, command, _, kind = await _take(inner, 4)
    if kind == 3:
        host = (await _take(inner, (await _take(inner, 1))[0])).decode("latin-1")
    elif kind in (1, 4):
        raw = await _take(inner, 4 if kind == 1 else 16)
        host = str(plain(IPv4Address(raw) if kind == 1 else IPv6Address(raw)))
    else:
        raise Refused("a kind of address that SOCKS does not have")
    port = int.from_bytes(await _take(inner, 2), "big")
    if version != 5 or command != 1:
        await sockets.send(inner, _SOCKS_ODD)
        ward.refuse("socks", Target(port=port, name=host[:100]), "SOCKS is for TCP connections out only")
        raise Refused("no CONNECT")
    target = target_from(host, port)
    verdict = _before(ward.policy, target)
    if not verdict.allowed:
        await sockets.send(inner, _SOCKS_NO)
        with Flow(ward, inner, "socks") as flow:
            raise flow.refuse(target, verdict)
    await sockets.send(inner, _SOCKS_DONE)
    return target


async def _take(inner: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await sockets.receive(inner, size - len(data))
        if not more:
            raise Refused("it ended too soon")
        data += more
    return data
