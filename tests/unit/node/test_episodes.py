"""What a client tells of an episode becomes a line of the ledger, or an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.episodes import entries_of
from hotbed.wire.pools import CreatePool, Episode

POOL: Any = SimpleNamespace(
    id="pl_1",
    isolation="fork",
    request=CreatePool(env_digest="ab" * 32, n=2, record=True, label="mine"),
    template=SimpleNamespace(digest="sha256:1"),
)
TOLD: dict[str, Any] = {"worker": 1, "number": 3, "seed": 7, "actions": '[1,"a"]', "shown": '{"task":0}\n{}'}


def test_an_episode_is_found_by_its_pool_and_says_what_it_was() -> None:
    """The environment, the seed, the actions, what they showed."""
    [entry] = entries_of(POOL, [Episode(**TOLD, reward=2.5, status="exit", reason="7", unkept=4)], at=1.0)
    asked = msgspec.json.decode(entry.request)

    assert (entry.kind, entry.group_id, entry.status, entry.reward) == ("episode", "pl_1", "exit", 2.5)
    assert (entry.seed, entry.determinism, entry.seed_ack) == (f"{7:064x}", "none", "off")
    assert (asked["env_digest"], asked["seed"], asked["actions"]) == ("ab" * 32, 7, [1, "a"])
    assert (entry.stdout, entry.label) == (b'{"task":0}\n{}', "mine")
    assert entry.details == {"reason": "7", "unkept_steps": 4}


@pytest.mark.parametrize("wrong", [{"actions": "{}"}, {"actions": "["}, {"actions": "[NaN]"}, {"seed": -1}])
def test_what_is_no_episode_is_refused(wrong: dict[str, Any]) -> None:
    """A client may say anything; whoever reads it later must be able to."""
    with pytest.raises(InvalidRequest):
        entries_of(POOL, [Episode(**TOLD), Episode(**{**TOLD, **wrong})], at=1.0)
