"""Episodes of environments as lines of the ledger. What a client tells is checked here for being data. Pure."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

import msgspec

from hotbed.errors import InvalidRequest
from hotbed.node.ledger.entry import Entry
from hotbed.node.pool import Pool
from hotbed.wire.pools import Episode

_SEEDS = 1 << 256


def entries_of(pool: Pool, episodes: Sequence[Episode], *, at: float) -> list[Entry]:
    """A line for each. Raises `InvalidRequest`, with none of them kept."""
    return [_entry(pool, one, at) for one in episodes]


def _entry(pool: Pool, one: Episode, at: float) -> Entry:
    shown = one.shown.encode("utf-8", "replace")
    return Entry(
        id=f"episode_{secrets.token_hex(8)}",
        kind="episode",
        at=at,
        template=pool.request.template,
        template_digest=pool.template.digest,
        request=_asked(pool, one),
        seed=f"{one.seed:064x}",
        isolation=pool.isolation,
        status=one.status,
        reward=one.reward,
        stdout=shown,
        stdout_total=len(shown),
        total_ms=one.took_ms,
        group_id=pool.id,
        label=pool.request.label or "",
        details={"reason": one.reason[:2000], "unkept_steps": one.unkept},
    )


def _asked(pool: Pool, one: Episode) -> bytes:
    """What it takes to play it again."""
    if not 0 <= one.seed < _SEEDS:
        raise InvalidRequest("the seed of an episode is an int in [0, 2**256)")
    request = pool.request
    asked = {
        "pool": pool.id,
        "env_digest": request.env_digest,
        "mode": request.mode,
        "preload": request.preload,
        "limits": request.limits,
        "egress": request.egress,
        "worker": one.worker,
        "episode": one.number,
        "seed": one.seed,
        "branched": one.branched,
        "actions": msgspec.Raw(_checked(one)),
    }
    return msgspec.json.encode(asked)


def _checked(one: Episode) -> bytes:
    """The actions, which whoever shows them reads as JSON."""
    data = one.actions.encode("utf-8", "replace")
    try:
        if not isinstance(msgspec.json.decode(data), list):
            raise InvalidRequest("an episode's actions are a JSON array")
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise InvalidRequest(f"an episode's actions are no JSON: {error}") from None
    return data
