"""Tickets: who holds one may open a port of one sandbox until it expires, and nothing else.

A ticket is told to whoever opens a URL, so it is made to be of no other use, and to need no memory: its time and a code
over all that it stands for, by a secret that lives as long as the node. A sandbox's id cannot be guessed and is never
used again, so a ticket cannot outlive its sandbox.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time

from hotbed.errors import Unauthorized

_CODE = 40


class Tickets:
    """Mints and checks them."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)

    def mint(self, sandbox_id: str, port: int, *, ttl_s: float) -> tuple[str, float]:
        """A ticket, and until when it is good."""
        expires = int(time.time() + ttl_s)
        return f"{expires:x}.{self._code(sandbox_id, port, expires)}", float(expires)

    def check(self, ticket: str, sandbox_id: str, port: int) -> None:
        """Raise `Unauthorized` for one that is not of this sandbox and port, or no longer good."""
        text, _, code = ticket.partition(".")
        try:
            expires = int(text, 16) if len(text) <= 12 else 0
        except ValueError:
            expires = 0
        good = hmac.compare_digest(code.encode(), self._code(sandbox_id, port, expires).encode())
        if not good or expires < time.time():
            raise Unauthorized("this address is not good, or no longer", hint="ask for a new one: connect_url")

    def _code(self, sandbox_id: str, port: int, expires: int) -> str:
        return hmac.new(self._secret, f"{sandbox_id} {port} {expires}".encode(), hashlib.sha256).hexdigest()[:_CODE]
