"""A template's pool of network namespaces, each with nothing but its loopback up.

Making one costs more than everything else in a fork, so they are made when the template is idle and leased. A sandbox
holds no capability over its namespace and cannot write /proc/sys, and its sockets die with it; what could be left is
whatever IP traffic leaves behind (TIME_WAIT, port and metric caches, counters). So a namespace is leased again only if
its loopback has never carried a packet and no socket is open in it; the other ones are dropped.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections import deque
from typing import Deque

from .. import kernel

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_RTM_NEWSTATS, _RTM_GETSTATS, _NLM_F_REQUEST, _IFLA_STATS_LINK_64 = 92, 94, 1, 1
_LOOPBACK_INDEX = 1
_GETSTATS = struct.pack("=IHHII", 28, _RTM_GETSTATS, _NLM_F_REQUEST, 1, 0) + struct.pack(
    "=BxHII", 0, 0, _LOOPBACK_INDEX, 1 << (_IFLA_STATS_LINK_64 - 1)
)
_ANSWER = 512  # bytes; it takes half of them
_answer = struct.Struct("=IHHII BxHII HHQ").unpack_from  # struct nlmsghdr, if_stats_msg, nlattr, and the first number
_ANSWER_LEAST = struct.calcsize("=IHHII BxHII HHQ")


class Network:
    """One namespace: its descriptor, and a netlink socket that stays inside it and can ask it about its loopback."""

    def __init__(self) -> None:
        """Make it and leave the calling process inside."""
        kernel.unshare(kernel.CLONE_NEWNET)
        _loopback_up()
        self.fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.wired = False  # given a way out: no other sandbox may have it
        self._link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)

    def carried_packets(self) -> int:
        """How many packets its loopback has carried in its life."""
        self._link.send(_GETSTATS)
        return loopback_packets(self._link.recv(_ANSWER))

    def close(self) -> None:
        """Let it go; the kernel removes it when nothing is inside."""
        os.close(self.fd)
        self._link.close()


class NetworkPool:
    """Namespaces ready to lease. Lives in a process with one thread."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._filling = True
        self._free: Deque[Network] = deque()
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def __len__(self) -> int:
        return len(self._free)

    def lease(self) -> Network:
        """A clean namespace, made on the spot if none is ready."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, network: Network) -> None:
        """Take a namespace whose sandbox has been reaped; keep it only if nothing is left in it."""
        if not network.wired and len(self._free) < 2 * self.size and network.carried_packets() == 0:
            self._free.append(network)
        else:
            network.close()

    def wants_more(self) -> bool:
        """Whether the stock is low. What is out on lease will come back, so a half is enough once it was full."""
        self._filling = len(self._free) < (self.size if self._filling else self.size // 2)
        return self._filling

    def fill_one(self) -> None:
        """Make one more."""
        self._free.append(self._make())

    def _make(self) -> Network:
        try:
            return Network()
        finally:
            kernel.setns(self.home, kernel.CLONE_NEWNET)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = bytearray(struct.pack("16sh14x", b"lo", 0))
        fcntl.ioctl(sock, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("h", request, 16)
        struct.pack_into("h", request, 16, flags | _IFF_UP)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


def loopback_packets(message: bytes) -> int:
    """rx_packets in an RTM_NEWSTATS message (rtnetlink(7)): the loopback's counters. Any other counts as used."""
    if len(message) < _ANSWER_LEAST:
        return 1
    _, kind, _, _, _, _, _, index, _, _, attribute, packets = _answer(message)
    right = kind == _RTM_NEWSTATS and index == _LOOPBACK_INDEX and attribute == _IFLA_STATS_LINK_64
    return int(packets) if right else 1
