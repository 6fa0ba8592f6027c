"""Groups, and how their rewards are spread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotbed.node.ledger import groups
from hotbed.node.ledger.store import Store
from hotbed.node.state.database import Where
from tests.unit.node.ledger.entries import entry


@pytest.fixture
def store(where: Where) -> Iterator[Store]:
    """An empty ledger."""
    made = Store(where)
    yield made
    made.close()


def test_a_group_is_told_by_its_rewards_and_statuses(store: Store) -> None:
    """What has no reward is counted, and does not move the mean."""
    rewards = (1.0, 0.0, 0.0, 0.5, None)
    store.add(
        entry(n, kind="grade", group_id="g", reward=reward, status="infra_error" if reward is None else "ok", at=n)
        for n, reward in enumerate(rewards, 10)
    )

    found = groups.summary(store, "g")

    assert found is not None
    assert (found.members, found.invalid, found.mean) == (5, 1, 0.375)
    assert (dict(found.rewards), dict(found.statuses)) == ({1.0: 1, 0.0: 2, 0.5: 1}, {"ok": 4, "infra_error": 1})
    assert found.ended_at == 14
    assert groups.summary(store, "h") is None


def test_pages_hold_every_group_once_newest_first(store: Store) -> None:
    """Members of groups that ran beside each other lie among each other in the ledger."""
    store.add(entry(n, kind="grade", group_id=f"g{n % 5}" if n < 50 else f"h{n // 10}", reward=0.0) for n in range(90))
    store.add([entry(100)])  # of no group

    seen, before = list[str](), None
    while True:
        page = groups.page(store, limit=2, before=before)
        seen += [group.id for group in page.groups]
        if page.next is None:
            break
        before = page.next

    assert seen == ["h8", "h7", "h6", "h5", "g4", "g3", "g2", "g1", "g0"]


def test_a_tenant_sees_its_own_groups(store: Store) -> None:
    """The same name of two tenants is two groups."""
    store.add(
        entry(n, kind="grade", group_id="g", tenant="acme" if n % 2 else "bob", reward=float(n % 2)) for n in range(8)
    )

    [mine] = groups.page(store, limit=5, tenant="acme").groups
    everybodys = groups.page(store, limit=5).groups

    assert (mine.tenant, mine.members, mine.mean) == ("acme", 4, 1.0)
    assert sorted(group.tenant for group in everybodys) == ["acme", "bob"]
