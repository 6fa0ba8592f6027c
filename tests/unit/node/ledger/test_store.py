"""Rows and blobs: found by what one knows of them, kept once, removed by age and size."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hotbed.errors import Error, UnknownRollout
from hotbed.node.ledger.store import Store
from hotbed.node.state.database import Where
from hotbed.node.state.sqlite import SqliteDatabase
from tests.unit.node.ledger.entries import entry


def test_an_entry_comes_back_with_its_bytes(where: Where) -> None:
    """Output is any bytes, and large output is compressed on the way."""
    store = Store(where)
    noise = bytes(range(256)) * 40
    store.add([entry(1, stdout=noise, stderr=b"\xff", details={"checks": [1, 2]})])
    row = store.get("rollout_000001")

    assert store.blob(row["stdout_hash"]) == noise
    assert store.blob(row["stderr_hash"]) == b"\xff"
    assert store.blob(row["request_hash"]) == b'{"code":"print(1)"}'
    assert row["details"] == {"checks": [1, 2]}
    store.close()


def test_the_same_bytes_are_kept_once(where: Where) -> None:
    """512 siblings of a group share their task."""
    store = Store(where)
    store.add(entry(number, stdout=b"same", request=b"task") for number in range(50))
    [blobs] = store.rows("SELECT count(*) AS count FROM blobs")

    assert (store.count(), blobs["count"]) == (50, 2)
    store.close()


def test_adding_twice_changes_nothing(where: Where) -> None:
    """What the spool kept may have been committed just before the kill."""
    store = Store(where)
    store.add([entry(1)])
    store.add([entry(1, status="exit"), entry(2)])

    assert [row["status"] for row in store.find()] == ["ok", "ok"]
    store.close()


def test_rows_are_found_by_what_one_knows(where: Where) -> None:
    """Newest first, page by page, filtered; an unknown filter is refused rather than ignored."""
    store = Store(where)
    store.add(entry(number, status="ok" if number % 2 else "exit") for number in range(10))
    page = store.find(limit=3)

    assert [row["id"][-1] for row in page] == ["9", "8", "7"]
    assert [row["id"][-1] for row in store.find(limit=2, before=page[-1]["seq"])] == ["6", "5"]
    assert len(store.find(where={"status": "exit"})) == 5
    with pytest.raises(Error, match="cannot be filtered"):
        store.find(where={"1=1; --": "x"})
    store.close()


def test_a_unique_prefix_names_a_row(where: Where) -> None:
    """People paste the beginning of an id."""
    store = Store(where)
    store.add([entry(1), entry(20)])

    assert store.get("rollout_00002")["id"] == "rollout_000020"
    for wrong in ("rollout_", "", "nope", "%"):
        with pytest.raises(UnknownRollout):
            store.get(wrong)
    store.close()


def test_history_is_one_sandbox_in_order(where: Where) -> None:
    """An exec is replayed with what came before it in its sandbox."""
    store = Store(where)
    store.add(entry(number, sandbox_id="ab"[number % 2]) for number in range(6))
    row = store.get("rollout_000004")

    assert [item["id"][-1] for item in store.history("a", row["seq"])] == ["0", "2", "4"]
    store.close()


def test_age_and_size_remove_rows_and_their_blobs(where: Where) -> None:
    """The ledger does not grow without bound, and keeps what others still share."""
    store = Store(where)
    store.add(entry(number, stdout=random.Random(number).randbytes(4000)) for number in range(100))
    assert store.retain(newer_than=1050.0, max_bytes=1 << 40) == 50
    before = store.size()
    assert store.retain(newer_than=0, max_bytes=before // 2) > 0

    assert store.size() <= before // 2
    assert store.get("rollout_000099")
    store.close()


@pytest.mark.parametrize(
    ("known", "index"),
    [
        ({"status": "oom"}, "rollouts_by_status"),
        ({"kind": "put"}, "rollouts_by_kind"),
        ({"template": "rare"}, "rollouts_by_template"),
        ({"label": "run-7"}, "rollouts_by_label"),
        ({"tenant": "acme"}, "rollouts_by_tenant"),
        ({"group_id": "g"}, "rollouts_by_group"),
        ({"sandbox_id": "s"}, "rollouts_by_sandbox"),
    ],
)
def test_a_page_of_what_is_rare_reads_no_other_rows(known: dict[str, str], index: str, tmp_path: Path) -> None:
    """In a ledger of millions, a filter that matches ten rows must not look at all of them."""
    store = Store(tmp_path / "l.db")
    asked: list[str] = []
    assert isinstance(store._db, SqliteDatabase)
    store._db._db.set_trace_callback(asked.append)
    store.find(where=known)
    store._db._db.set_trace_callback(None)

    [plan] = store.rows(f"EXPLAIN QUERY PLAN {asked[0]}")

    assert f"USING INDEX {index} " in plan["detail"]
    store.close()
