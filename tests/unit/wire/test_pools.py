"""Requests for pools are checked where they are made."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.pools import (
    EPISODES_LIMIT,
    CreatePool,
    EndWorkers,
    Episode,
    PoolRow,
    RecordEpisodes,
    WorkerRow,
    WorkerTrouble,
)

DIGEST = "ab" * 32


@pytest.mark.parametrize(
    "change",
    [{"n": 0}, {"n": 4097}, {"env_digest": "x"}, {"seed": "1"}, {"template": ""}, {"slots": 0}, {"slots": -1}],
)
def test_a_pool_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    """On both ends of the wire."""
    with pytest.raises(InvalidRequest):
        CreatePool(**{"env_digest": DIGEST, "n": 1, **change})


def test_requests_and_rows_survive_the_wire() -> None:
    """Nested ones too."""
    request = CreatePool(env_digest=DIGEST, n=3, mode="boltz", slots=2, limits={"pids": 9})
    ends = EndWorkers(workers=(WorkerTrouble(index=1, trouble="closed"),))
    worker = WorkerRow(index=0, id="wk", generation=1, state="waiting")
    row = PoolRow(
        id="pl",
        n=1,
        mode="default",
        template="python",
        env_digest=DIGEST,
        isolation="fork",
        age_s=1.0,
        workers=(worker,),
    )

    for value in (request, ends, row):
        assert from_wire(type(value), to_wire(value)) == value


def test_a_request_holds_so_many_episodes_and_no_more() -> None:
    """A client that has more asks again."""
    one = Episode(worker=0, number=0, seed=1)
    request = RecordEpisodes(episodes=(one,) * EPISODES_LIMIT)

    assert from_wire(RecordEpisodes, to_wire(request)) == request
    with pytest.raises(InvalidRequest, match="episodes"):
        RecordEpisodes(episodes=(one,) * (EPISODES_LIMIT + 1))
