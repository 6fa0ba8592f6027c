"""The operations on snapshots as requests."""

from __future__ import annotations

import json

from hotbed.sdk import snapshot_calls


def test_each_names_its_pool_and_workers() -> None:
    """In path and body."""
    take = snapshot_calls.take("pl_1", 3, skip=True, verify=False)
    restore = snapshot_calls.restore("pl_1", "sn_1", [1, 2], verify=True)
    fork = snapshot_calls.fork("pl_1", 0, [1], skip=False, verify=False)

    assert (take.method, take.target) == ("POST", "/v1/pools/pl_1/snapshots")
    assert json.loads(take.body) == {"worker": 3, "skip": True, "verify": False}
    assert restore.target == "/v1/pools/pl_1/restore"
    assert json.loads(restore.body) == {"snapshot": "sn_1", "workers": [1, 2], "verify": True}
    assert fork.target == "/v1/pools/pl_1/fork"
    assert json.loads(fork.body)["targets"] == [1]


def test_ids_are_quoted() -> None:
    """An id with a slash is an unknown id, not another path."""
    assert snapshot_calls.free("a/b").target == "/v1/snapshots/a%2Fb"
    assert snapshot_calls.free("a").method == "DELETE"
    assert snapshot_calls.listing().target == "/v1/snapshots"
