"""The status is what is known first, and what is likely second."""

from __future__ import annotations

import signal

import pytest

from hotbed.guest.agent.verdict import Evidence, decide, decode


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence(exit_code=0), ("ok", 0, None)),
        (Evidence(exit_code=3), ("exit", 3, None)),
        (Evidence(signal=11), ("signal", None, 11)),
        (Evidence(cause="timeout", signal=9), ("timeout", None, 9)),
        (Evidence(cause="output", exit_code=0), ("output", None, 9)),
        (Evidence(exit_code=0, disk_full=True, last_words=b"No space left on device"), ("ok", 0, None)),
        (Evidence(exit_code=1, disk_full=True), ("disk", 1, None)),
        (Evidence(exit_code=1, last_words=b"[Errno 28] No space left on device"), ("disk", 1, None)),
        (Evidence(exit_code=1, last_words=b"[Errno 11] Resource temporarily unavailable"), ("pids", 1, None)),
        (Evidence(exit_code=1, fork_refusals=0, last_words=b"can't start new thread"), ("exit", 1, None)),
        (Evidence(exit_code=2, fork_refusals=4), ("pids", 2, None)),
        (Evidence(signal=9, oom_kills=1), ("oom", None, 9)),
        (Evidence(exit_code=137, oom_kills=1), ("oom", 137, None)),
        (Evidence(signal=9, oom_kills=0, maxrss_kib=1 << 20, memory_mib=1024), ("signal", None, 9)),
        (Evidence(signal=9, maxrss_kib=1 << 20, memory_mib=1024), ("oom", None, 9)),
        (Evidence(signal=9, maxrss_kib=1 << 10, memory_mib=1024), ("signal", None, 9)),
        (Evidence(signal=15, maxrss_kib=1 << 20, memory_mib=1024), ("signal", None, 15)),
        (Evidence(exit_code=1, memory_mib=64, last_words=b'  File "<code>"\nMemoryError\n'), ("oom", 1, None)),
        (Evidence(exit_code=1, memory_mib=64, oom_kills=0, last_words=b"\nMemoryError\n"), ("exit", 1, None)),
    ],
)
def test_decide(evidence: Evidence, verdict: tuple[str, int | None, int | None]) -> None:
    """Status, exit code, signal."""
    assert decide(evidence) == verdict


def test_decode() -> None:
    """A wait status holds one or the other."""
    assert decode(3 << 8) == (3, None)
    assert decode(signal.SIGKILL) == (None, 9)
