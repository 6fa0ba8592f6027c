"""The keys of a running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import Unauthorized
from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.keyring import LOOK_EVERY_S, Keyring
from hotbed.node.keys.store import KeyStore


class Clock:
    """A clock that a test turns."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def written(tmp_path: Path) -> Iterator[KeyStore]:
    """What the command line writes to."""
    store = KeyStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def clock() -> Clock:
    """The keyring's clock."""
    return Clock()


@pytest.fixture
def keyring(tmp_path: Path, written: KeyStore, clock: Clock) -> Iterator[Keyring]:
    """What the server reads with."""
    ring = Keyring(KeyStore(tmp_path), clock=clock)
    yield ring
    ring.close()


def add(store: KeyStore, **fields: Any) -> tuple[Key, str]:
    """A new key and its text."""
    key, secret = Key(tenant="acme", tier="pro", scopes=frozenset({"run"}), **fields), new_secret()
    store.add(key, secret)
    return key, key_text(key, secret)


def test_a_key_is_found_by_its_text_alone(keyring: Keyring, written: KeyStore) -> None:
    """Another secret, another id and no key at all get one answer."""
    key, text = add(written)

    assert keyring.find(text) == key
    wrong = {text[:-1] + ("0" if text[-1] != "0" else "1"), f"hb_00000000_{'0' * 64}", "x", "", "hb_" + key.id}
    answers = set()
    for guess in wrong:
        with pytest.raises(Unauthorized) as refused:
            keyring.find(guess)
        answers.add(str(refused.value))
    assert len(answers) == 1


def test_a_revoked_key_is_useless_at_the_next_look(keyring: Keyring, written: KeyStore, clock: Clock) -> None:
    """A running server needs no restart, and reads nothing per request."""
    key, text = add(written)
    keyring.find(text)
    written.revoke(key.id)

    clock.now += LOOK_EVERY_S

    with pytest.raises(Unauthorized, match="revoked"):
        keyring.find(text)


def test_an_expired_key_is_useless(keyring: Keyring, written: KeyStore) -> None:
    """Without anybody doing anything."""
    _, text = add(written, created_at=1.0, expires_at=2.0)

    with pytest.raises(Unauthorized, match="expired"):
        keyring.find(text)


def test_keys_are_needed_from_the_first_one_on(keyring: Keyring, written: KeyStore, clock: Clock) -> None:
    """Revoking the last one must not open the door."""
    assert not keyring.needed
    key, _ = add(written)
    clock.now += LOOK_EVERY_S
    assert keyring.needed

    written.revoke(key.id)
    clock.now += LOOK_EVERY_S

    assert keyring.needed


def test_who_was_let_in_by_a_key_stays_in_as_long_as_it_is_good(
    keyring: Keyring, written: KeyStore, clock: Clock
) -> None:
    """A page that was signed in to ends with its key, whose secret nobody keeps."""
    key, _ = add(written)
    assert keyring.get(key.id) == key

    written.revoke(key.id)
    clock.now += LOOK_EVERY_S

    for name in (key.id, "00000000", ""):
        with pytest.raises(Unauthorized):
            keyring.get(name)
    assert [known.id for known in keyring.all()] == [key.id]
