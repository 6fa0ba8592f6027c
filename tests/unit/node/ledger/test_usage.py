"""Usage in the ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotbed.node.ledger.store import Store
from hotbed.node.ledger.usage import UsageRow, keep, totals
from hotbed.node.state.database import Where
from hotbed.node.state.migrations import migrations
from tests.unit.node.ledger.entries import entry

HOUR = 360_000


@pytest.fixture
def store(where: Where) -> Iterator[Store]:
    """An empty ledger."""
    made = Store(where)
    yield made
    made.close()


def row(tenant: str, hour: int, **used: float) -> UsageRow:
    """A tenant's hour."""
    return UsageRow(tenant=tenant, hour=HOUR + hour * 3600, **used)  # type: ignore[arg-type]  # each field of its type


def test_sums_of_runs_and_hours_are_added(store: Store) -> None:
    """A node that restarted goes on where it was."""
    keep(store, "first", [row("acme", 0, rollouts=3, cpu_s=1.5), row("acme", 1, rollouts=1)])
    keep(store, "second", [row("acme", 1, rollouts=1, cpu_s=0.25, bytes_out=10**12)])

    [found] = totals(store, since=HOUR, until=HOUR + 7200)

    assert (found["tenant"], found["rollouts"], found["cpu_s"], found["bytes_out"]) == ("acme", 5, 1.75, 10**12)


def test_telling_a_run_again_replaces_what_it_told(store: Store) -> None:
    """The database may have been away when it was told before, or not."""
    for count in (1, 5, 5):
        keep(store, "run", [row("acme", 0, rollouts=count)])

    assert totals(store, since=HOUR, until=HOUR + 1)[0]["rollouts"] == 5


def test_a_span_touches_whole_hours_of_one_tenant_or_all(store: Store) -> None:
    """Whoever asks from half past gets that hour too."""
    keep(store, "run", [row("acme", hour, execs=1) for hour in range(4)] + [row("bob", 1, grades=1)])

    assert totals(store, since=HOUR + 5400, until=HOUR + 7201, tenant="acme")[0]["execs"] == 2
    assert [found["tenant"] for found in totals(store, since=HOUR, until=HOUR + 9 * 3600)] == ["acme", "bob"]
    assert totals(store, since=0, until=HOUR) == []


def test_lines_from_before_are_counted_once(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade does not begin with an empty bill."""
    before = migrations("hotbed.node.ledger")[:2]
    with monkeypatch.context() as patched:
        patched.setattr("hotbed.node.state.migrations.migrations", lambda package: before)
        older = Store(where)
        known = {"tenant": "acme", "kind": "rollout", "exec_ms": 500.0, "stdout_total": 3, "stderr_total": 1}
        older.add([entry(1, at=HOUR + 10.0, **known), entry(2, at=HOUR + 20.0, **known)])
        older.add([entry(3, at=HOUR + 3700.0, **{**known, "tenant": "bob"})])
        older.close()

    store = Store(where)
    [found] = totals(store, since=HOUR, until=HOUR + 60, tenant="acme")

    assert (found["rollouts"], found["sandbox_s"], found["bytes_out"], store.count()) == (2, 1.0, 8, 3)
    store.close()
