"""An episode is played again where it came from, or it is said why not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.episodes import entries_of
from hotbed.node.ledger.entry import Entry
from hotbed.node.played import play_again
from hotbed.wire.ledger import Difference
from hotbed.wire.pools import CreatePool, Episode
from tests.unit.node.pooling import pooling_node, send_env

SHOWN = """{"task":{"seed":7}}
{"observation":{"$":["bytes","AA=="]},"reward":1.0,"terminated":false,"truncated":false}"""
TOLD = Episode(
    worker=3, number=2, seed=7, status="unfinished", reward=1.0, actions='[{"$":["bytes","AA=="]}]', shown=SHOWN
)
Change = Callable[[dict[str, Any], dict[str, Any]], None]


def played(tmp_path: Path, told: Episode = TOLD, change: Change = lambda row, asked: None) -> Any:
    """What comes of it, after its row was changed."""

    async def scenario() -> tuple[Entry, list[Difference]]:
        async with pooling_node(tmp_path / "home") as node:
            digest = await send_env(node, tmp_path / "env")
            made = await node.pools.create(CreatePool(env_digest=digest, n=4, record=True), None)
            pool = node.pools.get(made.id)
            [entry] = entries_of(pool, [told], at=1.0)
            await pool.close("over")
            row = {name: getattr(entry, name) for name in ("status", "reward", "template", "template_digest")}
            row["details"] = dict(entry.details)
            asked = {"request": entry.request}
            change(row, asked)
            return await play_again(node.pools, row, asked["request"], entry.stdout, None)

    return asyncio.run(scenario())


def test_it_comes_out_the_same(tmp_path: Path) -> None:
    """Bytes and all; what was seen the second time is a line of its own."""
    entry, differences = played(tmp_path)

    assert differences == []
    assert (entry.stdout, entry.status, entry.seed) == (SHOWN.encode(), "unfinished", f"{7:064x}")


def test_what_differs_is_named(tmp_path: Path) -> None:
    """The reward, the status, the first byte of what was seen."""
    told = Episode(worker=0, number=0, seed=7, status="ok", reward=2.0, actions="[]", shown='{"task":{"seed":8}}')
    _, differences = played(tmp_path, told)

    assert [(item.what, item.offset) for item in differences] == [("status", None), ("reward", None), ("stdout", 16)]


def replacing(old: bytes, new: bytes) -> Change:
    """A request in which that has become this."""
    return lambda row, asked: asked.update(request=asked["request"].replace(old, new))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row, asked: row["details"].update(unkept_steps=3), "3 steps"),
        (lambda row, asked: row.update(template_digest="sha256:other"), "template"),
        (replacing(b'"branched":false', b'"branched":true'), "copy"),
        (replacing(b'"bytes"', b'"bites"'), "cannot be read"),
        (replacing(b'"env_digest":"', b'"env_digest":"' + b"0" * 64 + b'","x":"'), "directory"),
    ],
    ids=("cut", "template", "copy", "tag", "directory"),
)
def test_what_cannot_be_played_is_refused(tmp_path: Path, change: Change, why: str) -> None:
    """A difference would say nothing then."""
    with pytest.raises(InvalidRequest, match=why):
        played(tmp_path, change=change)
