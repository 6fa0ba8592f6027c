"""What `note` returned from is in the ledger, whatever happens to the process next."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.spool import Spool
from hotbed.node.ledger.writer import Retention
from tests.unit.node.ledger.entries import entry

FOREVER = Retention(days=100 * 365)


def test_what_was_noted_is_read_back(tmp_path: Path) -> None:
    """A reader sees everything noted before it looked."""
    ledger = Ledger(tmp_path, retention=FOREVER)
    for number in range(1000):
        ledger.note(entry(number))

    assert ledger.read(lambda store: store.count()) == 1000
    assert ledger.stats()["lost"] == 0
    ledger.close()
    ledger.close()


def test_a_kill_loses_nothing_that_was_noted(tmp_path: Path) -> None:
    """The answer to a client leaves after `note`: kill -9 right then must not lose the rollout."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        ledger = Ledger(tmp_path, retention=FOREVER)
        for number in range(500):
            ledger.note(entry(number))
        os.write(tell, b"500")
        signal.pause()
    os.read(told, 3)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(told)
    os.close(tell)
    ledger = Ledger(tmp_path, retention=FOREVER)

    assert ledger.read(lambda store: store.count()) == 500
    ledger.close()


def test_a_node_leaves_the_spool_of_a_living_one_alone(tmp_path: Path) -> None:
    """Two nodes of one user share the state directory."""
    first = Ledger(tmp_path, retention=FOREVER)
    first.note(entry(1))
    second = Ledger(tmp_path, retention=FOREVER)
    second.note(entry(2))
    second.close()
    first.note(entry(3))

    assert first.read(lambda store: store.count()) == 3
    assert first.stats()["lost"] == 0
    first.close()


def test_nothing_is_left_in_the_spool_after_a_clean_close(tmp_path: Path) -> None:
    """The next start has nothing to recover."""
    ledger = Ledger(tmp_path, retention=FOREVER)
    ledger.note(entry(1))
    ledger.close()

    assert list((tmp_path / "spool").iterdir()) == []


def test_a_full_disk_is_counted_and_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training run must not stop for its ledger, and the loss must not go unseen."""

    def refuse(spool: Spool, record: bytes) -> int:
        raise OSError(28, "No space left on device")

    ledger = Ledger(tmp_path, retention=FOREVER)
    monkeypatch.setattr(Spool, "append", refuse)
    ledger.note(entry(1))

    assert ledger.stats()["lost"] == 1
    ledger.close()


def test_old_entries_go(tmp_path: Path) -> None:
    """Retention runs by itself."""
    ledger = Ledger(tmp_path, retention=Retention(days=1))
    ledger.note(entry(1))  # from 1970
    ledger.flush()

    assert ledger.read(lambda store: store.count()) == 0
    ledger.close()
