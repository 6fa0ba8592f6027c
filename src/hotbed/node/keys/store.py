"""Keys, in `keys.db` under HOTBED_HOME or in PostgreSQL, and the pepper of their digests, always in `keys.pepper`.

The command line writes, a running server reads; both open the same database. A key is never deleted, so that it stays
known that this node has keys, and which ones were revoked.

With another pepper no key is good, and nothing else would say why: a database with keys is refused to a home that has
none, or not theirs.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Any

from hotbed.errors import Error, InvalidRequest, NotFound
from hotbed.node.keys.audit import Action, add, local_user
from hotbed.node.keys.key import Key, digest_of, proof_of
from hotbed.node.state.database import open_database, place_of

PEPPER_SIZE = 32
_INSERT = (
    "INSERT INTO keys (id, tenant, tier, scopes, label, digest, created_at, expires_at, revoked_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_FIRST = "INSERT INTO pepper (one, digest) VALUES (1, ?) ON CONFLICT DO NOTHING"
_REVOKE = "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"


class KeyStore:
    """One connection. Use it from one thread."""

    def __init__(self, home: Path, dsn: str = "") -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = home / "keys.pepper"
        self._db = open_database(place_of(home, "keys", dsn), str(__package__))
        self.is_elsewhere = bool(dsn)
        try:
            if not self._path.exists() and self.version()[0]:
                raise self._another_pepper()
            self.pepper = _pepper(self._path)
            self.check_pepper()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def check_pepper(self) -> None:
        """Raises when the keys were made with another one. Those made before schema 3 do not tell."""
        rows = self._db.rows("SELECT digest FROM pepper")
        if any(bytes(row["digest"]) != proof_of(self.pepper) for row in rows):
            raise self._another_pepper()

    def _another_pepper(self) -> Error:
        return Error(
            f"the keys of this database were made with another pepper than {self._path}: none of them would be good",
            hint="copy keys.pepper from the node that made them, or from the backup that the database is from",
        )

    def add(self, key: Key, secret: str) -> None:
        """Keep a new key. A tenant has one tier, so a key of another one is refused while the others are good."""
        now = time.time()
        for other, _ in self.all():
            if other.tenant == key.tenant and other.tier != key.tier and other.trouble(now) is None:
                raise InvalidRequest(
                    f"tenant {key.tenant} is of tier {other.tier} by key {other.id}", hint="revoke that key first"
                )
        scopes = ",".join(sorted(key.scopes))
        row = (key.id, key.tenant, key.tier, scopes, key.label, digest_of(secret, self.pepper))
        with self._db.writing():
            if not self.version()[0]:
                self._db.run(_FIRST, (proof_of(self.pepper),))
            self.check_pepper()
            self._db.run(_INSERT, (*row, key.created_at, key.expires_at, key.revoked_at))
            told = {"tenant": key.tenant, "tier": key.tier, "scopes": scopes, "label": key.label}
            add(self._db, Action(actor=local_user(), action="key.create", target=key.id, details=told))

    def revoke(self, key_id: str) -> Key:
        """Make a key useless, at once and for good. Doing it again is no error. Raises `NotFound`."""
        with self._db.writing():
            if self._db.run(_REVOKE, (time.time(), key_id)):
                add(self._db, Action(actor=local_user(), action="key.revoke", target=key_id, details={}))
        for key, _ in self.all():
            if key.id == key_id:
                return key
        raise NotFound(f"no key {key_id[:40]!r}", hint="`hotbed keys list` shows their ids")

    def all(self) -> list[tuple[Key, bytes]]:
        """Every key that was ever made, with the digest of its secret, oldest first."""
        rows = self._db.rows("SELECT * FROM keys ORDER BY created_at, id")
        return [(_key(row), bytes(row["digest"])) for row in rows]

    def version(self) -> tuple[int, int]:
        """What changes with the keys: they are only ever added, and revoked."""
        [found] = self._db.rows("SELECT count(*) AS made, count(revoked_at) AS revoked FROM keys")
        return int(found["made"]), int(found["revoked"])


def _key(row: dict[str, Any]) -> Key:
    return Key(
        id=row["id"],
        tenant=row["tenant"],
        tier=row["tier"],
        scopes=frozenset(row["scopes"].split(",")),
        label=row["label"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )


def _pepper(path: Path) -> bytes:
    """This home's pepper, made on first use. It appears whole or not at all, whoever else makes one meanwhile."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    if not path.exists():
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(PEPPER_SIZE))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        fresh.unlink()
    pepper = path.read_bytes()
    if len(pepper) != PEPPER_SIZE:
        raise InvalidRequest(f"{path} is not a pepper of {PEPPER_SIZE} bytes", hint="restore it from a backup")
    return pepper
