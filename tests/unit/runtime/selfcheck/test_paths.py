"""The attempts on files notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.paths import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("host-files-read-only", StubBench(["create in /usr"])),
        ("only-regular-files-travel", StubBench()),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
