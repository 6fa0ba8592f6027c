"""Copies of a node's state."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.keys.key import Key, key_text, new_secret
from hotbed.node.keys.keyring import Keyring
from hotbed.node.keys.store import KeyStore
from hotbed.node.ledger.store import Store
from hotbed.node.state.backup import back_up
from tests.unit.node.ledger.entries import entry


def test_a_copy_serves_in_place_of_the_original(tmp_path: Path) -> None:
    """Keys let in, lines are found, and nobody else can read it."""
    home, copy = tmp_path / "home", tmp_path / "backups" / "today"
    keys, key, secret = KeyStore(home), Key(tenant="acme", tier="pro", scopes=frozenset(("run",))), new_secret()
    keys.add(key, secret)
    ledger = Store(home / "ledger.db")
    ledger.add([entry(1)])

    assert back_up(home, copy) == ["keys.db", "ledger.db", "keys.pepper"]

    ring = Keyring(KeyStore(copy))
    assert ring.find(key_text(key, secret)).tenant == "acme"
    restored = Store(copy / "ledger.db")
    assert restored.count() == 1
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (copy, *copy.iterdir())} == {0}
    for each in (keys, ledger, ring, restored):
        each.close()


def test_a_copy_is_of_one_moment_while_the_node_goes_on(tmp_path: Path) -> None:
    """Every line with its blobs, however many come meanwhile."""
    home, copies = tmp_path / "home", tmp_path / "copies"
    ledger = Store(home / "ledger.db")
    begun = threading.Event()

    def write() -> None:
        for number in range(300):
            ledger.add([entry(number, stdout=b"%d" % number * 50)])
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    for number in range(3):
        back_up(home, copies / str(number))
    writer.join()

    for number in range(3):
        copy = Store(copies / str(number) / "ledger.db")
        assert all(copy.blob(row["stdout_hash"]) for row in copy.find(limit=1000))
        copy.close()
    ledger.close()


def test_an_older_backup_is_not_written_over(tmp_path: Path) -> None:
    """The last good one may be all there is."""
    KeyStore(tmp_path / "home").close()
    back_up(tmp_path / "home", tmp_path / "copy")

    with pytest.raises(InvalidRequest, match="there already"):
        back_up(tmp_path / "home", tmp_path / "copy")
