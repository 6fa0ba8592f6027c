"""Which addresses no name may lead to, however it resolves, unless a policy lists the address itself.

An address may hide another: IPv4 mapped into IPv6, 6to4, Teredo and NAT64 all carry one. A mapped one is taken for what
it carries; the tunnels are refused as a kind of their own, since no server on the Internet is reached by them only.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("metadata", ("169.254.169.254/32", "169.254.170.2/32", "fd00:ec2::254/128", "100.100.100.200/32")),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("tunnel", ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "192.88.99.0/24")),
    ("reserved", ("0.0.0.0/8", "240.0.0.0/4", "192.0.0.0/24", "198.18.0.0/15", "100::/64", "5f00::/16")),
)
_RANGES: tuple[tuple[str, Network], ...] = tuple((kind, ip_network(text)) for kind, texts in _KINDS for text in texts)


def plain(address: Address) -> Address:
    """The address itself; an IPv4 one that is mapped into IPv6 as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def parse(text: str) -> Address | None:
    """An address from its text, zone and brackets left out; None if it is none."""
    try:
        return plain(ip_address(text.strip("[]").partition("%")[0]))
    except ValueError:
        return None


def special_kind(address: Address) -> str:
    """Why an address is none of the public Internet; empty if it may be."""
    address = plain(address)
    for kind, network in _RANGES:
        if address.version == network.version and address in network:
            return kind
    return ""


def holds(network: Network, address: Address) -> bool:
    """Whether a network holds an address, of whichever family."""
    return network.version == address.version and address in network


def reaches_special(network: Network) -> bool:
    """Whether a network holds any address that is none of the public Internet."""
    return any(network.version == known.version and network.overlaps(known) for _, known in _RANGES)


def covers(whole: Network, part: Network) -> bool:
    """Whether one network holds all of another, of whichever family."""
    if isinstance(whole, IPv4Network):
        return isinstance(part, IPv4Network) and part.subnet_of(whole)
    return isinstance(part, IPv6Network) and part.subnet_of(whole)
