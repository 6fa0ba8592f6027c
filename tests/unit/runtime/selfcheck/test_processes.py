"""The attempts on processes notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.processes import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("agent-memory-closed", StubBench({"opened": ["mem"], "traced": -1})),
        ("agent-memory-closed", StubBench({"opened": [], "traced": -1}, stdout=b"SECRET=1")),
        ("agent-survives-signals", StubBench(stdout=b"")),
        ("host-processes-unseen", StubBench([1234])),
        ("siblings-unseen", StubBench(stdout=b"marked\n", status="exit")),
        ("timeout-kills-the-tree", StubBench(stdout=b"before\n")),
        ("no-inherited-descriptors", StubBench([7])),
        ("node-environment-unseen", StubBench(stdout=b"HOTBED_API_KEY")),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
