"""One entry of a policy's list: a name, a wildcard, an address or a network, perhaps with a port.

Text forms: `example.org`, `*.example.org` (every name below it, not itself), `192.0.2.7`, `192.0.2.0/24`,
`2001:db8::/32`, each with `:443` or `:80,443` after it (IPv6 in brackets then). The object form adds what text cannot
say: `{"host": ..., "ports": [...], "methods": ["GET"], "bytes": 1000000, "addresses": ["10.0.0.0/8"]}`, where
`addresses` are the otherwise refused ones to which this name may resolve. `"read": true` has TLS to it ended at the
broker, so that what it says inside can be held against the policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from hotbed.egress.addresses import Address, Network, holds, parse
from hotbed.errors import InvalidRequest

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_METHOD = re.compile(r"[A-Z]{1,20}")
_FIELDS = ("host", "ports", "methods", "bytes", "addresses", "read")
_NAME_LIMIT = 253
_FORMS = (
    "an entry is a domain, *.domain, an address or a CIDR block, each perhaps with :port (behind IPv6 in [brackets])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one line of a list means. No ports, no methods: all of them."""

    text: str
    host: str = ""
    below: bool = False
    network: Network | None = None
    ports: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    max_bytes: int | None = None
    addresses: tuple[Network, ...] = ()
    read: bool = False

    def names(self, name: str, *, subdomains: bool = False) -> bool:
        """Whether it is about this name. `subdomains` makes a plain domain mean what is below it too."""
        if not self.host:
            return False
        if self.below:
            return name.endswith("." + self.host)
        return name == self.host or (subdomains and name.endswith("." + self.host))

    def holds(self, address: Address) -> bool:
        """Whether it lists this address."""
        return self.network is not None and holds(self.network, address)

    def on(self, port: int | None) -> bool:
        """Whether it is about this port; a lookup has none yet."""
        return port is None or not self.ports or port in self.ports

    def to_wire(self) -> Any:
        """As it can be read again."""
        shown = {
            "ports": list(self.ports),
            "methods": list(self.methods),
            "bytes": self.max_bytes,
            "addresses": [str(network) for network in self.addresses],
            "read": self.read,
        }
        host = str(self.network) if self.network is not None else f"*.{self.host}" if self.below else self.host
        given = {name: value for name, value in shown.items() if value}
        return {"host": host, **given} if given else host


def entry_of(given: object, where: str) -> Entry:
    """Read an entry. Raises `InvalidRequest` that names it and says where it stands."""
    if isinstance(given, str):
        host, ports = _split(given, where)
        return _made(given, host, ports, {}, where)
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"{where}: {given!r} is no entry", hint=_FORMS)
    unknown = sorted(map(str, set(given) - set(_FIELDS)))
    if unknown or not isinstance(given.get("host"), str):
        what = f"{unknown[0]!r} is not known" if unknown else "host is missing"
        raise InvalidRequest(f"{where}: {what}", hint=f"an entry has {', '.join(_FIELDS)}")
    text = str(given["host"])
    host, ports = _split(text, where)
    listed = tuple(_port(item, text, where) for item in _list(given, "ports", where))
    if ports and listed:
        raise InvalidRequest(f"{where}: {text!r} has its ports twice", hint="behind the host, or in ports")
    return _made(text, host, ports or listed, given, where)


def _made(text: str, host: str, ports: tuple[int, ...], given: Mapping[str, Any], where: str) -> Entry:
    network = _network(host, text, where)
    below = host.startswith("*.")
    limit, read = given.get("bytes"), given.get("read", False)
    if type(read) is not bool or (read and network is not None):
        raise InvalidRequest(
            f"{where}: read of {text!r} is true or false, and for a name", hint="addresses have no certificate"
        )
    if limit is not None and (type(limit) is not int or limit <= 0):
        raise InvalidRequest(f"{where}: bytes of {text!r} must be a whole number above 0, not {limit!r}")
    return Entry(
        text=text,
        host="" if network is not None else _name(host[2:] if below else host, text, where),
        below=below,
        network=network,
        ports=ports,
        methods=tuple(_method(item, text, where) for item in _list(given, "methods", where)),
        max_bytes=limit,
        read=read,
        addresses=tuple(_listed_network(item, text, where) for item in _list(given, "addresses", where)),
    )


def _split(text: str, where: str) -> tuple[str, tuple[int, ...]]:
    """The host of an entry's text and its ports."""
    text = text.strip()
    if "://" in text:
        raise InvalidRequest(f"{where}: {text!r} is a URL", hint=f"{_FORMS}: {text.split('://')[1].split('/')[0]}")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        ports = rest[1:] if rest.startswith(":") else ""
        if not bracket or (rest and not ports):
            raise InvalidRequest(f"{where}: {text!r} is no entry", hint=_FORMS)
    elif text.count(":") == 1:
        host, _, ports = text.partition(":")
    else:
        return text, ()
    return host, tuple(_port(item, text, where) for item in ports.split(",")) if ports else ()


def _port(item: object, text: str, where: str) -> int:
    number = int(item) if isinstance(item, str) and item.strip().isdecimal() else item
    if type(number) is not int or not 0 < number < 65536:
        raise InvalidRequest(f"{where}: {item!r} in {text!r} is no port", hint="ports are 1 to 65535")
    return number


def _network(host: str, text: str, where: str) -> Network | None:
    if "/" not in host and parse(host) is None:
        return None
    try:
        return ip_network(str(parse(host) or host))
    except ValueError as error:
        raise InvalidRequest(f"{where}: {text!r} is no CIDR block: {error}", hint=_FORMS) from None


def _listed_network(item: object, text: str, where: str) -> Network:
    network = _network(item, text, where) if isinstance(item, str) else None
    if network is None:
        raise InvalidRequest(f"{where}: {item!r} among the addresses of {text!r} is no address or CIDR block")
    return network


def _name(host: str, text: str, where: str) -> str:
    try:
        name = normal_name(host)
    except ValueError:
        name = ""
    if not name or name.replace(".", "").isdigit():
        raise InvalidRequest(f"{where}: {text!r} is no domain name", hint=_FORMS)
    return name


def _method(item: object, text: str, where: str) -> str:
    if not isinstance(item, str) or not _METHOD.fullmatch(item.upper()):
        raise InvalidRequest(f"{where}: {item!r} among the methods of {text!r} is no HTTP method")
    return item.upper()


def _list(given: Mapping[str, Any], name: str, where: str) -> list[object]:
    listed = given.get(name)
    if listed is not None and not isinstance(listed, (list, tuple)):
        raise InvalidRequest(f"{where}: {name} is a list, not {listed!r}")
    return list(listed or ())


def normal_name(host: str) -> str:
    """A domain name as it is compared: lower case, ASCII, no final dot. Raises ValueError for what is none."""
    name = host.rstrip(".") if host.endswith(".") and not host.endswith("..") else host
    if not name.isascii():
        name = name.encode("idna").decode("ascii")
    name = name.lower()
    if not name or len(name) > _NAME_LIMIT or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{host[:80]!r} is no domain name")
    return name
