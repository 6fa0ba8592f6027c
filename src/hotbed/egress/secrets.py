"""What a node adds to requests of a sandbox that must not have it: a header for some hosts, inside TLS only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.egress.entries import Entry, entry_of
from hotbed.errors import InvalidRequest

_FIELDS = ("hosts", "header", "value", "tenants")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_NOT_OURS = ("host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect")
VALUE_LIMIT = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """`value` is shown by no representation of it. `tenants` may name it besides the node's own user; `*` is all."""

    name: str
    hosts: tuple[Entry, ...]
    header: str
    value: str = field(repr=False)
    tenants: tuple[str, ...] = ()

    def is_for(self, name: str, port: int) -> bool:
        """Whether a request there gets it."""
        return any(entry.names(name) and port in (entry.ports or (443,)) for entry in self.hosts)

    def to_wire(self) -> dict[str, Any]:
        """For the broker, and for nobody else."""
        hosts = [entry.to_wire() for entry in self.hosts]
        return {"hosts": hosts, "header": self.header, "value": self.value}


def secret_of(name: str, given: object) -> Secret:
    """Read one. Raises `InvalidRequest`, which never holds the value."""
    where = f"secret {name!r}"
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"{name[:64]!r} is no name of a secret", hint="letters, digits, . _ - (64 at most)")
    if not isinstance(given, Mapping) or set(given) - set(_FIELDS):
        raise InvalidRequest(f"{where} is an object with {', '.join(_FIELDS)} and nothing else")
    value, header = given.get("value"), given.get("header", "authorization")
    if not isinstance(value, str) or len(value) > VALUE_LIMIT or not _VALUE.fullmatch(value):
        raise InvalidRequest(f"{where}: its value is no text that fits into a header")
    if not isinstance(header, str) or not _HEADER.fullmatch(header) or header.lower() in _NOT_OURS:
        raise InvalidRequest(f"{where}: what it names is no header that can be added", hint='such as "authorization"')
    listed = given.get("hosts")
    if not isinstance(listed, (list, tuple)):
        raise InvalidRequest(f"{where}: hosts is a list of hosts")
    hosts = tuple(entry_of(item, f"{where}: hosts") for item in listed)
    if not hosts or any(not entry.host for entry in hosts):
        raise InvalidRequest(
            f"{where}: hosts are the names of hosts, at least one", hint="addresses have no certificate"
        )
    tenants = given.get("tenants", [])
    if not isinstance(tenants, (list, tuple)) or not all(isinstance(item, str) for item in tenants):
        raise InvalidRequest(f"{where}: tenants is a list of names")
    return Secret(name=name, hosts=hosts, header=header.lower(), value=value, tenants=tuple(tenants))
