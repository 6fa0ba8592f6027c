"""Keys in SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import Error, InvalidRequest, NotFound
from hotbed.node.keys.key import Key, new_secret
from hotbed.node.keys.store import KeyStore

SCOPES = frozenset({"run", "read"})


def test_what_is_kept_comes_back_and_the_secret_is_not_there(tmp_path: Path) -> None:
    """Neither in the database nor in its log."""
    key, secret = Key(tenant="acme", tier="pro", scopes=SCOPES, label="trainer", expires_at=9e9), new_secret()
    store = KeyStore(tmp_path)
    store.add(key, secret)
    [(found, digest)] = store.all()
    store.close()

    assert found == key
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert len(digest) == 32
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())


def test_the_pepper_is_made_once(tmp_path: Path) -> None:
    """A second one would make every key useless."""
    first, second = KeyStore(tmp_path), KeyStore(tmp_path)

    assert first.pepper == second.pepper

    first.close()
    second.close()
    (tmp_path / "keys.pepper").write_bytes(b"short")
    with pytest.raises(InvalidRequest, match="backup"):
        KeyStore(tmp_path)


def test_keys_without_their_pepper_are_refused_and_none_is_made_up(tmp_path: Path) -> None:
    """A restore that forgot the file, a second node with a home of its own: no key would be good, and no word why."""
    home, other = tmp_path / "home", tmp_path / "other"
    store = KeyStore(home)
    store.add(Key(tenant="acme", tier="pro", scopes=SCOPES), new_secret())
    store.close()
    other.mkdir()
    (other / "keys.db").write_bytes((home / "keys.db").read_bytes())

    for _ in range(2):
        with pytest.raises(Error, match="another pepper") as refusal:
            KeyStore(other)
        assert refusal.value.hint and "copy keys.pepper" in refusal.value.hint
    assert not (other / "keys.pepper").exists()
    (other / "keys.pepper").write_bytes(b"x" * 32)
    with pytest.raises(Error, match="another pepper"):
        KeyStore(other)
    (other / "keys.pepper").write_bytes((home / "keys.pepper").read_bytes())
    KeyStore(other).close()


def test_a_first_key_is_not_made_beside_that_of_another_pepper(tmp_path: Path) -> None:
    """Both opened the database while it was empty."""
    store = KeyStore(tmp_path)
    store._db.run("INSERT INTO pepper (one, digest) VALUES (1, ?)", (b"of another",))

    with pytest.raises(Error, match="another pepper"):
        store.add(Key(tenant="acme", tier="pro", scopes=SCOPES), new_secret())
    assert store.all() == []
    store.close()


def test_revoking_is_for_good_and_idempotent(tmp_path: Path) -> None:
    """The first time counts."""
    store = KeyStore(tmp_path)
    key = Key(tenant="acme", tier="pro", scopes=SCOPES)
    store.add(key, new_secret())

    first = store.revoke(key.id).revoked_at

    assert first is not None
    assert store.revoke(key.id).revoked_at == first
    with pytest.raises(NotFound):
        store.revoke("nope")
    store.close()


def test_a_tenant_has_one_tier_at_a_time(tmp_path: Path) -> None:
    """Else its limits would depend on which of its keys came last."""
    store = KeyStore(tmp_path)
    key = Key(tenant="acme", tier="pro", scopes=SCOPES)
    store.add(key, new_secret())
    other = Key(tenant="acme", tier="demo", scopes=SCOPES)
    with pytest.raises(InvalidRequest, match="tier pro"):
        store.add(other, new_secret())

    store.revoke(key.id)
    store.add(other, new_secret())

    store.close()


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    """Not guessed at."""
    store = KeyStore(tmp_path)
    store._db.run("PRAGMA user_version = 99")
    store.close()

    with pytest.raises(Error, match="newer"):
        KeyStore(tmp_path)
