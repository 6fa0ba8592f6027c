"""The thread behind the spool, and a database that is not always there."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from hotbed.errors import NodeUnavailable
from hotbed.node.ledger import writer
from hotbed.node.ledger.entry import Entry
from hotbed.node.ledger.ledger import Ledger
from hotbed.node.ledger.store import Store
from hotbed.node.ledger.writer import Retention
from tests.unit.node.ledger.entries import entry

FOREVER = Retention(days=100 * 365)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """While this holds anything, the database takes nothing."""
    reasons: list[str] = []
    whole = Store.add

    def add(store: Store, entries: Iterable[Entry]) -> None:
        if reasons:
            raise NodeUnavailable(reasons[0])
        whole(store, entries)

    monkeypatch.setattr(Store, "add", add)
    return reasons


def ids(ledger: Ledger) -> list[str]:
    """What a reader sees, oldest first."""
    return [row["id"] for row in reversed(ledger.read(lambda store: store.find(limit=5000)))]


def test_an_outage_is_caught_up_with_by_itself_and_in_order(tmp_path: Path, away: list[str]) -> None:
    """Nothing is lost, nothing is kept in memory, and nobody has to restart anything."""
    ledger = Ledger(tmp_path, retention=FOREVER)
    ledger.note(entry(0))
    ledger.flush()
    away.append("it is being moved")
    for number in range(1, 1200):
        ledger.note(entry(number))
    ledger.flush()
    assert ledger.stats() == {"waiting": 0, "behind": 1199, "lost": 0}
    away.clear()
    ledger.note(entry(1200))

    assert ids(ledger) == [f"rollout_{number:06d}" for number in range(1201)]
    assert ledger.stats() == {"waiting": 0, "behind": 0, "lost": 0}
    ledger.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_what_is_behind_when_the_node_ends_is_taken_in_by_the_next(tmp_path: Path, away: list[str]) -> None:
    """The spool keeps it."""
    away.append("it is being moved")
    ledger = Ledger(tmp_path, retention=FOREVER)
    ledger.note(entry(1))
    ledger.close()
    away.clear()
    ledger = Ledger(tmp_path, retention=FOREVER)

    assert ids(ledger) == ["rollout_000001"]
    ledger.close()


def test_a_database_that_says_nothing_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the request, and neither answers nor hangs up. What comes meanwhile waits in the spool."""
    answers, whole = threading.Event(), Store.add

    def add(store: Store, entries: Iterable[Entry]) -> None:
        answers.wait(30)
        whole(store, entries)

    monkeypatch.setattr(Store, "add", add)
    monkeypatch.setattr(writer, "_QUEUE", 10)
    monkeypatch.setattr(writer, "_FLUSH_S", 0.05)
    ledger = Ledger(tmp_path, retention=FOREVER)
    for number in range(700):
        ledger.note(entry(number))
    with pytest.raises(NodeUnavailable, match="does not answer"):
        ledger.read(lambda store: store.count())
    told = ledger.stats()
    monkeypatch.setattr(writer, "_FLUSH_S", 30)
    answers.set()

    assert told["waiting"] <= 11 and told["behind"] > 100
    assert sorted(ids(ledger)) == [f"rollout_{number:06d}" for number in range(700)]
    assert ledger.stats() == {"waiting": 0, "behind": 0, "lost": 0}
    ledger.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_one_line_that_no_database_takes_costs_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is counted, and named in the log."""
    ledger = Ledger(tmp_path, retention=FOREVER)
    ledger.note(entry(1))
    ledger.note(entry(2, exit_code=2**63))
    ledger.note(entry(3))

    assert ids(ledger) == ["rollout_000001", "rollout_000003"]
    assert ledger.stats()["lost"] == 1
    assert "event=ledger_refused id=rollout_000002" in caplog.text
    ledger.close()


def test_what_may_be_kept_is_not_exceeded_for_long(tmp_path: Path) -> None:
    """A burst may fill the disk sooner than the clock is looked at; the newest stay, with their blobs."""
    ledger = Ledger(tmp_path, retention=Retention(days=100 * 365, max_bytes=1 << 20))
    for number in range(60):
        ledger.note(entry(number, stdout=os.urandom(100_000)))
        ledger.flush()
    size, blob = ledger.read(lambda store: (store.size(), store.blob(store.find(limit=1)[0]["stdout_hash"])))
    ledger.close()

    assert 1 << 19 < size < 3 << 19
    assert len(blob) == 100_000
