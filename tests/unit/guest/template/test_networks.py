"""The pool of network namespaces: filled when idle, and only clean ones come back."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from hotbed.guest import kernel
from hotbed.guest.template import networks
from tests.unit.guest.in_namespace import in_user_namespace


class FakeNetwork:
    """A namespace that remembers whether it was let go."""

    def __init__(self, packets: int = 0) -> None:
        self.wired = False
        self.packets = packets
        self.closed = False

    def carried_packets(self) -> int:
        """As set."""
        return self.packets

    def close(self) -> None:
        """Note it."""
        self.closed = True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[networks.NetworkPool]:
    """A pool of four that makes fakes."""
    monkeypatch.setattr(networks, "Network", FakeNetwork)
    monkeypatch.setattr(kernel, "setns", lambda fd, kind: None)
    yield networks.NetworkPool(4)


def test_pool_fills_to_its_size_and_then_only_below_half(pool: networks.NetworkPool) -> None:
    """What is on lease comes back; making one for each lease would double the work."""
    while pool.wants_more():
        pool.fill_one()
    assert len(pool) == 4

    leased = [pool.lease(), pool.lease()]
    assert not pool.wants_more()
    leased.append(pool.lease())

    assert pool.wants_more()


def test_empty_pool_makes_one_on_the_spot(pool: networks.NetworkPool) -> None:
    """Slower, but never without a namespace of its own."""
    assert pool.lease() is not None


def test_used_namespace_is_dropped_and_clean_one_is_leased_again(pool: networks.NetworkPool) -> None:
    """TIME_WAIT, port and metric caches: any IP packet may have left something."""
    clean, used = FakeNetwork(), FakeNetwork(packets=1)

    pool.give_back(clean)  # type: ignore[arg-type]  # fakes
    pool.give_back(used)  # type: ignore[arg-type]  # fakes

    assert pool.lease() is clean  # type: ignore[comparison-overlap]  # fakes
    assert used.closed and not clean.closed


def answer(*, kind: int = 92, index: int = 1, attribute: int = 1, packets: int = 0) -> bytes:
    """What the kernel says of the loopback, RTM_NEWSTATS with IFLA_STATS_LINK_64, or something else."""
    head = struct.pack("=IHHII", 44, kind, 0, 1, 0) + struct.pack("=BxHII", 0, 0, index, 1)
    return head + struct.pack("=HHQ", 204, attribute, packets)


@pytest.mark.parametrize(
    "message", [b"", answer()[:-1], bytes(64), answer(kind=2), answer(index=2), answer(attribute=2)]
)
def test_message_without_the_counter_counts_as_used(message: bytes) -> None:
    """Never lease again what cannot be told: an error, another interface, other statistics."""
    assert networks.loopback_packets(message) == 1


def test_counter_is_read_from_the_attribute() -> None:
    """IFLA_STATS_LINK_64 begins with rx_packets."""
    assert networks.loopback_packets(answer(packets=7)) == 7
    assert networks.loopback_packets(answer()) == 0


def test_traffic_on_the_loopback_is_seen() -> None:
    """The real thing, in a child with a user namespace of its own."""

    def attempt() -> bool:
        import socket

        network = networks.Network()
        before = network.carried_packets()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            sock.sendto(b"x", sock.getsockname())
        return before == 0 and network.carried_packets() == 1

    assert in_user_namespace(attempt)
