"""The operations on pools as requests."""

from __future__ import annotations

import json
from typing import Any

from hotbed.sdk import pool_calls
from hotbed.sdk.calls import Call
from hotbed.wire.pools import CreatePool, Episode

DIGEST = "ab" * 32


def test_only_creation_is_made_under_the_lease() -> None:
    """Everything else is about a pool that is under it already."""
    create = pool_calls.create_pool(CreatePool(env_digest=DIGEST, n=2))
    others: list[Call[Any]] = [
        pool_calls.get_env_dir(DIGEST),
        pool_calls.get_pool("pl_1"),
        pool_calls.list_pools(),
        pool_calls.delete_pool("pl_1"),
        pool_calls.worker_output("pl_1", 0),
    ]

    assert (create.method, create.target, create.leased) == ("POST", "/v1/pools", True)
    assert create.timeout_s > 600
    assert not any(call.leased for call in others)


def test_ids_are_quoted() -> None:
    """An id with a slash is an unknown id, not another path."""
    assert pool_calls.get_pool("a/b").target == "/v1/pools/a%2Fb"


def test_troubles_travel_by_worker() -> None:
    """All in one request."""
    call = pool_calls.end_workers("pl_1", {3: "closed", 5: "timeout"})

    assert json.loads(call.body) == {"workers": [{"index": 3, "trouble": "closed"}, {"index": 5, "trouble": "timeout"}]}


def test_episodes_travel_together() -> None:
    """As they are."""
    call = pool_calls.record_episodes("pl_1", [Episode(worker=1, number=0, seed=7, actions="[1]")])
    [told] = json.loads(call.body)["episodes"]

    assert (call.method, call.target) == ("POST", "/v1/pools/pl_1/episodes")
    assert (told["worker"], told["seed"], told["actions"]) == (1, 7, "[1]")


def test_a_directory_is_sent_once() -> None:
    """A stream that was read cannot be read again."""
    call = pool_calls.put_env_dir(DIGEST, iter([b"x"]), 1)

    assert (call.method, call.upload_length, call.streams) == ("PUT", 1, True)
