"""Giving a sandbox a way out without giving it a network: sockets that listen inside, accepted outside.

A socket belongs to the network namespace it was made in, whoever holds it. So the template enters the namespace of one
of its sandboxes, makes listening sockets there, leaves, and hands them to the node's egress broker: what a program
connects to is accepted by the broker, and there is still no interface but the loopback and no route out.

So that programs need not know of it, every address is local inside ("AnyIP"): whatever a program dials at a port that
is listened on arrives here, and the broker reads from the accepted socket where it was meant to go. A lookup arrives
the same way, whichever server it was for. What nobody listens on is refused by the kernel at once.

The sandbox cannot interfere: it has no capability over its namespace, and ports below 1024 are not for it to bind.
"""

from __future__ import annotations

import array
import errno
import json
import os
import socket
import struct
from typing import Any, Dict, List, Sequence, Tuple

from .. import kernel

BACKLOG = 256
DOORS_LIMIT = 200
DNS_PORT = 53
_RTM_NEWROUTE, _NLMSG_ERROR = 24, 2
_REQUEST_CREATE = 1 | 4 | 0x400  # NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE
_RTA_DST, _RTA_OIF, _RTA_PREFSRC = 1, 4, 7
_TABLE_LOCAL, _PROTO_BOOT, _SCOPE_HOST, _TYPE_LOCAL = 255, 3, 254, 2
_LOOPBACK_INDEX = 1
_IPV6_RECVPKTINFO, _IP_PKTINFO = 49, 8
_SOURCES = ((socket.AF_INET, socket.inet_aton("127.0.0.1")), (socket.AF_INET6, b"\0" * 15 + b"\1"))

Door = Tuple[str, int]


def wire(namespace: int, home: int, ports: Sequence[int], channel: int, *, again: bool) -> None:
    """Make the doors of a sandbox and send them to the broker; which could not be made travels along.

    Raises `OSError` when the namespace cannot be entered or made to take every address.
    """
    kernel.setns(namespace, kernel.CLONE_NEWNET)
    try:
        if not again:
            _take_every_address()
        opened, failed = _open_doors(ports)
    finally:
        kernel.setns(home, kernel.CLONE_NEWNET)
    try:
        _hand_over(channel, opened, failed)
    finally:
        for _, sock in opened:
            sock.close()


def _open_doors(ports: Sequence[int]) -> Tuple[List[Tuple[Door, socket.socket]], List[List[Any]]]:
    opened: List[Tuple[Door, socket.socket]] = []
    failed: List[List[Any]] = []
    wanted = [("tcp", port) for port in ports[:DOORS_LIMIT]] + ([("udp", DNS_PORT)] if DNS_PORT in ports else [])
    for kind, port in wanted:
        try:
            opened.append(((kind, port), _door(kind, port)))
        except OSError as error:  # a program inside listens there itself
            failed.append([kind, port, error.errno])
    return opened, failed


def _door(kind: str, port: int) -> socket.socket:
    """One listening socket for both families, or for IPv4 alone where the kernel has no other."""
    try:
        sock = socket.socket(socket.AF_INET6, _TYPES[kind] | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
        sock = socket.socket(socket.AF_INET, _TYPES[kind] | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        _prepare(sock, kind)
        sock.bind(("", port))
        if kind == "tcp":
            sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _prepare(sock: socket.socket, kind: str) -> None:
    if kind == "tcp":  # connections of doors that are gone may linger; a door beside one is refused all the same
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    elif sock.family == socket.AF_INET6:  # an answer must come from the address that was asked
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


_TYPES = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def _take_every_address() -> None:
    """`ip route add local 0.0.0.0/0 dev lo src 127.0.0.1`, and the same for IPv6 where there is one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as link:
        for family, source in _SOURCES:
            link.send(route_message(family, source))
            code = -struct.unpack_from("=i", link.recv(4096), 16)[0]
            unsupported = family == socket.AF_INET6 and code in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT)
            if code not in (0, errno.EEXIST) and not unsupported:
                raise OSError(code, os.strerror(code))


def route_message(family: int, source: bytes) -> bytes:
    """RTM_NEWROUTE (rtnetlink(7)) for a default route of type local over the loopback."""
    head = struct.pack("=BBBBBBBBI", family, 0, 0, 0, _TABLE_LOCAL, _PROTO_BOOT, _SCOPE_HOST, _TYPE_LOCAL, 0)
    attributes = struct.pack("=HHI", 8, _RTA_OIF, _LOOPBACK_INDEX)
    attributes += struct.pack("=HH", 4 + len(source), _RTA_PREFSRC) + source
    length = 16 + len(head) + len(attributes)
    return struct.pack("=IHHII", length, _RTM_NEWROUTE, _REQUEST_CREATE, 1, 0) + head + attributes


def _hand_over(channel: int, opened: List[Tuple[Door, socket.socket]], failed: List[List[Any]]) -> None:
    fds = array.array("i", [sock.fileno() for _, sock in opened])
    message = json.dumps({"doors": [list(door) for door, _ in opened], "failed": failed}).encode()
    with socket.socket(fileno=os.dup(channel)) as sock:
        sock.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else [])


def refuse(channel: int, error: OSError) -> None:
    """Tell the broker that there will be no doors."""
    try:
        with socket.socket(fileno=os.dup(channel)) as sock:
            sock.send(json.dumps({"error": str(error)}).encode())
    except OSError:
        pass  # then it hears of the channel's end


def serve(network: Any, home: int, message: Dict[str, Any], fds: Sequence[int]) -> None:
    """Answer the node's `wire`: the network is that of a sandbox, or None when it has ended already."""
    try:
        if network is not None:
            again, network.wired = network.wired, True
            wire(network.fd, home, message["ports"], fds[0], again=again)
    except OSError as error:
        refuse(fds[0], error)
    finally:
        for fd in fds:
            os.close(fd)
