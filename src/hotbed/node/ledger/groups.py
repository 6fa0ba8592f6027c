"""Groups as the ledger knows them: who belongs together, and how their rewards are spread.

A group is every line with one `group_id` of one tenant. The newest come first, by their newest line. A page is found by
walking back over grouped lines, a bounded number of them, so that its cost does not grow with the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotbed.node.ledger.store import Store, storable

WALKED = 20_000  # lines looked at for one page


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """One group. `rewards` counts each reward that was given, `invalid` the members that have none."""

    id: str
    tenant: str
    last_seq: int
    members: int
    begun_at: float
    ended_at: float
    template: str
    label: str
    statuses: Mapping[str, int]
    rewards: Mapping[float, int]
    invalid: int

    @property
    def mean(self) -> float | None:
        """Their mean reward; None where nobody has one."""
        graded = sum(self.rewards.values())
        return sum(reward * count for reward, count in self.rewards.items()) / graded if graded else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Groups, newest first. `next` is the `before` of the page after, None on the last."""

    groups: tuple[GroupSummary, ...]
    next: int | None


def page(store: Store, *, limit: int, before: int | None = None, tenant: str | None = None) -> GroupPage:
    """The groups whose newest line is older than `before`."""
    found: list[GroupSummary] = []
    passed: set[tuple[str, str]] = set()
    seq = 2**62 if before is None else before
    lines = _walk(store, seq, tenant)
    for row in lines:
        seq = row["seq"]
        key = (row["tenant"], row["group_id"])
        if key in passed:
            continue
        passed.add(key)
        if (group := summary(store, row["group_id"], tenant=row["tenant"])) and group.last_seq == seq:
            found.append(group)  # else it is newer than this page
            if len(found) == limit:
                break
    more = len(found) == limit or len(lines) == WALKED
    return GroupPage(groups=tuple(found), next=seq if more else None)


def summary(store: Store, group_id: str, *, tenant: str | None = None) -> GroupSummary | None:
    """One group; None where there is none. Of a replay that was graded again both gradings count."""
    where, values = _whose(tenant)
    rows = store.rows(
        "SELECT tenant, template, label, status, reward, kind, count(*) AS lines, max(seq) AS last_seq, "
        "min(at - total_ms / 1000) AS begun_at, max(at) AS ended_at FROM rollouts "
        f"WHERE group_id = ? {where} GROUP BY tenant, template, label, status, reward, kind",
        (storable(group_id), *values),
    )
    if not rows:
        return None
    newest = max(rows, key=lambda row: int(row["last_seq"]))
    statuses: Counter[str] = Counter()
    rewards: Counter[float] = Counter()
    for row in rows:
        statuses[row["status"]] += row["lines"]
        if row["reward"] is not None:
            rewards[row["reward"]] += row["lines"]
    return GroupSummary(
        id=group_id,
        tenant=newest["tenant"],
        last_seq=newest["last_seq"],
        members=sum(row["lines"] for row in rows),
        begun_at=min(row["begun_at"] for row in rows),
        ended_at=max(row["ended_at"] for row in rows),
        template=newest["template"],
        label=newest["label"],
        statuses=statuses,
        rewards=rewards,
        invalid=sum(row["lines"] for row in rows if row["kind"] == "grade" and row["reward"] is None),
    )


def _walk(store: Store, before: int, tenant: str | None) -> list[dict[str, Any]]:
    where, values = _whose(tenant)
    sql = (
        "SELECT seq, group_id, tenant FROM rollouts "
        f"WHERE group_id <> '' AND seq < ? {where} ORDER BY seq DESC LIMIT {WALKED}"
    )
    return store.rows(sql, (before, *values))


def _whose(tenant: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if tenant is None else ("AND tenant = ?", (tenant,))
