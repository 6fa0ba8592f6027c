"""A key, its text, and the digest that is kept of it.

The text is `hb_<id>_<secret>`, or `col_<tier>_<id>_<secret>` where the published client should read its tier from it.
The secret is 256 random bits, so nobody can try them out, not even at the speed of a fast hash: a slow one would
protect a guessable password, cost a tenth of a second per request, and protect nothing here. What is kept is a BLAKE2b
of the secret, keyed with a pepper in a file of its own: who reads the database alone cannot even test a key he has.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass, field

from hotbed.node.tenants import check_scopes, require_name
from hotbed.wire.checks import require

_TEXT = re.compile(r"(?:hb|col_[a-z0-9-]{1,40})_([0-9a-f]{8})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is known of a key. `revoked_at` and `expires_at` are seconds since the epoch; None means never."""

    tenant: str
    tier: str
    scopes: frozenset[str]
    label: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    created_at: float = field(default_factory=time.time)
    expires_at: float | None = None
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        require_name("tenant", self.tenant)
        require_name("tier", self.tier)
        check_scopes(tuple(self.scopes))
        require(self.expires_at is None or self.expires_at > self.created_at, "a key must not expire before it is made")

    def trouble(self, now: float) -> str | None:
        """Why it is no longer good; None when it is."""
        if self.revoked_at is not None:
            return "it was revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return "it has expired"
        return None


def new_secret() -> str:
    """256 bits that nobody can guess."""
    return secrets.token_hex(32)


def key_text(key: Key, secret: str, *, collimate: bool = False) -> str:
    """What the client sends."""
    return f"col_{key.tier}_{key.id}_{secret}" if collimate else f"hb_{key.id}_{secret}"


def parse(text: str) -> tuple[str, str] | None:
    """A key's id and secret; None for what is not the text of a key."""
    match = _TEXT.fullmatch(text)
    return (match[1], match[2]) if match else None


def proof_of(pepper: bytes) -> bytes:
    """What is kept of a pepper, to know it again by."""
    return hashlib.blake2b(b"hotbed pepper", key=pepper, digest_size=32).digest()


def digest_of(secret: str, pepper: bytes) -> bytes:
    """What is kept of a secret."""
    return hashlib.blake2b(secret.encode("ascii"), key=pepper, digest_size=32).digest()
