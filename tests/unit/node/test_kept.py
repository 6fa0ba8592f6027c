"""Snapshots of both kinds, as they are listed and freed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hotbed.node.kept import KeptLayer


def test_a_kept_layer_is_freed_by_its_owner() -> None:
    """Once, whoever asks."""
    dropped: list[str] = []
    closed: list[bool] = []
    layer: Any = SimpleNamespace(
        size=7, skipped=("x",), is_alive=lambda: not closed, close=lambda: closed.append(True), how="cgroup"
    )
    owner: Any = SimpleNamespace(drop=lambda _, reason: dropped.append(reason))
    template: Any = SimpleNamespace(spec=SimpleNamespace(name="python"))
    kept = KeptLayer(
        layer=layer, template=template, limits=None, egress=None, sandbox="s", lease=None, owner=owner, take_time_ms=1.0
    )

    row = kept.row()
    kept.discard("ttl")
    asyncio.run(kept.free())

    assert (row.sandbox, row.pool, row.size, row.skipped) == ("s", "", 7, ("x",))
    assert (dropped, kept.is_alive(), kept.size) == (["ttl"], False, 7)
