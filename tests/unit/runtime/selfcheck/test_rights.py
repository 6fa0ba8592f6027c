"""The attempts on identity and rights notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.rights import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("never-host-root", StubBench()),
        ("no-capabilities", StubBench({"NoNewPrivs": "1", "CapEff": "0000000000000001"})),
        ("no-capabilities", StubBench({"NoNewPrivs": "0"})),
        ("no-nested-user-namespaces", StubBench({"unshare user": "DONE"})),
        ("no-host-clock-or-name", StubBench({"sethostname": "DONE"})),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
