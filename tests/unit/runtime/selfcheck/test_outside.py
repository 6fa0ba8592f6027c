"""The attempts on the network and the node notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.outside import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("no-host-network", StubBench([False, True])),
        ("ports-lead-inside", StubBench()),
        ("no-egress", StubBench([["8.8.8.8", 53]])),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
