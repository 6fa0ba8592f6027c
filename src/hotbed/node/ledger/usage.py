"""Usage as the ledger keeps it: a row for each hour, tenant and run of a node, longer than the lines it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any

from hotbed.node.ledger.store import Store

HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One tenant's hour on one run of a node. `hour` is its first second since the epoch."""

    tenant: str
    hour: int
    sandboxes: int = 0
    rollouts: int = 0
    execs: int = 0
    grades: int = 0
    sandbox_s: float = 0.0
    cpu_s: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0


_COLUMNS = tuple(item.name for item in fields(UsageRow))
_SUMS = _COLUMNS[2:]
NOTHING = {name: 0 for name in _SUMS}
_KEEP = (
    f"INSERT INTO usage (run, {', '.join(_COLUMNS)}) VALUES ({', '.join('?' * (len(_COLUMNS) + 1))}) "
    f"ON CONFLICT (run, tenant, hour) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _SUMS)}"
)


def keep(store: Store, run: str, rows: Iterable[UsageRow]) -> None:
    """Keep the sums of a node's run, in place of those it told before."""
    store.change((_KEEP, (run, *astuple(row))) for row in rows)


def totals(store: Store, *, since: float, until: float, tenant: str | None = None) -> list[dict[str, Any]]:
    """What each tenant used in the hours that a span of time touches, by tenant; of one tenant, or of all."""
    whose, values = ("", ()) if tenant is None else ("AND tenant = ?", (tenant,))
    sums = ", ".join(f"sum({name}) AS {name}" for name in _SUMS)
    rows = store.rows(
        f"SELECT tenant, {sums} FROM usage WHERE hour > ? AND hour < ? {whose} GROUP BY tenant ORDER BY tenant",
        (since - HOUR_S, until, *values),
    )
    return [{name: _plain(name, value) for name, value in row.items()} for row in rows]


def _plain(name: str, value: Any) -> Any:
    if name == "tenant":
        return value
    return round(float(value), 3) if name.endswith("_s") else int(value)
