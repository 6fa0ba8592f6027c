"""The attempts on resources notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.resources import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("fork-bomb-contained", StubBench(stdout=b"900 11")),
        ("memory-bomb-contained", StubBench()),
        ("disk-fill-contained", StubBench({"full": "ENOSPC", "many": "ENOSPC", "size": 1 << 40, "files": 1})),
        ("descriptor-bomb-contained", StubBench(stdout=b"4000 EMFILE")),
        ("output-flood-contained", StubBench(stdout_total=5)),
        ("cpu-hog-contained", StubBench()),
        ("huge-arguments-refused", StubBench(status="exit", exit_code=126)),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
