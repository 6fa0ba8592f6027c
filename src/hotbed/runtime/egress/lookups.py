"""The DNS door: lookups of a sandbox, answered with addresses that are good inside it only."""

from __future__ import annotations

import asyncio
import socket
import struct
from ipaddress import ip_address
from typing import Any

from hotbed.egress.addresses import Address
from hotbed.egress.decisions import Target, Verdict, judge_name
from hotbed.egress.entries import normal_name
from hotbed.runtime.egress import dns, sockets
from hotbed.runtime.egress.resolving import Unresolved
from hotbed.runtime.egress.ward import Ward

_DATAGRAMS_MOST = 32
_ANCILLARY = socket.CMSG_SPACE(64)
_PKTINFO = ((socket.IPPROTO_IPV6, 50), (socket.IPPROTO_IP, 8))  # IPV6_PKTINFO, IP_PKTINFO
_TCP_IDLE_S = 10.0


def on_datagrams(ward: Ward, door: socket.socket) -> None:
    """Take what has arrived. What is more than a sandbox may ask at once is dropped, as DNS may be."""
    for _ in range(_DATAGRAMS_MOST):
        try:
            data, ancillary, _, sender = door.recvmsg(dns.MESSAGE_LIMIT + 1, _ANCILLARY)
        except OSError:  # nothing more, or an error of an earlier answer
            return
        query = dns.parse(data)
        if query is not None and not ward.is_full():
            ward.start(_answer_datagram(ward, door, query, _source_of(ancillary), sender))


def _source_of(ancillary: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """What makes an answer come from the address that was asked. The interface is the kernel's to choose."""
    for level, kind, data in ancillary:
        if (level, kind) == _PKTINFO[0]:
            return [(level, kind, data[:16] + struct.pack("i", 0))]
        if (level, kind) == _PKTINFO[1]:
            return [(level, kind, struct.pack("i", 0) + data[8:12] + b"\0\0\0\0")]
    return []


async def _answer_datagram(
    ward: Ward, door: socket.socket, query: dns.Query, source: list[tuple[int, int, bytes]], sender: Any
) -> None:
    reply = await answer(ward, query)
    try:
        door.sendmsg([reply], source, 0, sender)
    except OSError:
        pass  # who asked is gone, or asks faster than it reads


async def serve_stream(ward: Ward, inner: socket.socket) -> None:
    """The same over TCP: each message behind its length."""
    buffer = b""
    try:
        while True:
            while len(buffer) < 2 or len(buffer) < 2 + int.from_bytes(buffer[:2], "big"):
                data = await asyncio.wait_for(sockets.receive(inner, 4096), _TCP_IDLE_S)
                if not data:
                    return
                buffer += data
            size = 2 + int.from_bytes(buffer[:2], "big")
            query, buffer = dns.parse(buffer[2:size]), buffer[size:]
            if query is None:
                return
            reply = await answer(ward, query)
            await asyncio.wait_for(sockets.send(inner, struct.pack("!H", len(reply)) + reply), _TCP_IDLE_S)
    except (OSError, asyncio.TimeoutError):
        return
    finally:
        inner.close()


async def answer(ward: Ward, query: dns.Query) -> bytes:
    """The answer to one question."""
    try:
        name = normal_name(query.name)
    except ValueError:
        return dns.answer(query, dns.NO_SUCH_NAME)
    if name == "localhost" or name.endswith(".localhost"):
        return dns.answer(query, dns.NO_ERROR, _fitting(query, (ip_address("127.0.0.1"), ip_address("::1"))))
    verdict = judge_name(ward.policy, name)
    if not verdict.allowed:
        _tell(ward, name, verdict)
        return dns.answer(query, dns.NO_SUCH_NAME)
    if query.kind not in (dns.A, dns.AAAA):
        return dns.answer(query, dns.NO_ERROR)  # there is such a name, and nothing of this kind to say of it
    try:
        async with ward.lookups:
            if not ward.sealed:  # else nobody is asked, and what was not recorded is refused when it is requested
                await ward.resolver.addresses(name)
    except Unresolved as error:
        _tell(ward, name, Verdict(allowed=False, reason=str(error)))
        return dns.answer(query, dns.NO_SUCH_NAME if error.final else dns.SERVER_FAILED)
    pair = ward.names.addresses(name)
    if pair is None:
        _tell(ward, name, Verdict(allowed=False, reason="more names than a sandbox may ask for"))
        return dns.answer(query, dns.REFUSED)
    _tell(ward, name, verdict)
    return dns.answer(query, dns.NO_ERROR, _fitting(query, pair))


def _fitting(query: dns.Query, pair: tuple[Address, ...]) -> tuple[Address, ...]:
    version = 4 if query.kind == dns.A else 6
    return tuple(address for address in pair if address.version == version)


def _tell(ward: Ward, name: str, verdict: Verdict) -> None:
    if not verdict.allowed and verdict.entry is None and verdict.reason.endswith("does not resolve"):
        word = "failed"
    else:
        ward.tally.count(allowed=verdict.allowed)
        word = "allowed" if verdict.allowed else "denied"
    leak = ward.is_leak(verdict, Target(port=0, name=name).name)
    ward.tally.note(kind="dns", name=name, port=0, verdict=word, reason=verdict.reason, leak=leak and word == "denied")
