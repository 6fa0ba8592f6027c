"""What a host in a request means."""

from __future__ import annotations

from hotbed.egress.addresses import parse
from hotbed.egress.decisions import Target
from hotbed.egress.entries import normal_name


class Refused(Exception):
    """The policy, or what is behind it, says no."""


def target_from(host: str, port: int) -> Target:
    """What a host in a request means. Raises `Refused`."""
    address = parse(host)
    if address is not None:
        return Target(port=port, address=address)
    try:
        name = normal_name(host)
    except ValueError:
        raise Refused(f"{host[:80]!r} is no host") from None
    if name.replace(".", "").isdigit() or name.startswith("0x"):  # other spellings of addresses
        raise Refused(f"{host[:80]!r} is no host")
    return Target(port=port, name=name)
