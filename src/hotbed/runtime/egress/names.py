"""The addresses that names have inside one sandbox: made up, one pair for each name, and good there only.

A program that looks a name up gets such an address, and what it then dials tells the broker the name. Where the name
leads outside, the program never learns, and cannot choose. 198.18.0.0/15 is set aside for measurements (RFC 2544) and
the IPv6 prefix is a private one (RFC 4193): neither can be a real destination.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hotbed.egress.addresses import Address

NAMES_LIMIT = 20_000
_FIRST_V4 = int(IPv4Address("198.18.0.0"))
_FIRST_V6 = int(IPv6Address("fd68:6f74:6265:6400::"))


class Names:
    """Both directions. A name keeps its addresses for the life of the sandbox."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = [""]

    def addresses(self, name: str) -> tuple[IPv4Address, IPv6Address] | None:
        """The pair of a name; None when there are too many."""
        number = self._numbers.get(name)
        if number is None:
            if len(self._names) > NAMES_LIMIT:
                return None
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return IPv4Address(_FIRST_V4 + number), IPv6Address(_FIRST_V6 + number)

    def name_of(self, address: Address) -> str | None:
        """The name behind an address; empty for one that was never given out, None for one that is none of ours."""
        first = _FIRST_V4 if address.version == 4 else _FIRST_V6
        number = int(address) - first
        if not 0 <= number < (1 << 17):
            return None
        return self._names[number] if number < len(self._names) else ""
