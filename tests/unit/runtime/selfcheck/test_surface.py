"""The attempts on the kernel's surface notice when they succeed: one that cannot fail proves nothing."""

from __future__ import annotations

import pytest

from hotbed.runtime.selfcheck.surface import ATTEMPTS
from tests.unit.runtime.selfcheck.stub import StubBench, notices

OTHERS_TERMINAL = b'{"terminals": ["0", "5", "ptmx"], "mine": "/dev/pts/5", "pushed": "EPERM"}'


@pytest.mark.parametrize(
    ("claim", "bench"),
    [
        ("dangerous-system-calls-refused", StubBench({"ptrace": "DONE"})),
        ("dangerous-system-calls-refused", StubBench({"ptrace": "EFAULT"})),
        ("clone3-refused", StubBench({"clone3": "EINVAL"})),
        ("foreign-system-calls-refused", StubBench({"x32": "DONE", "i386": 31})),
        ("foreign-system-calls-refused", StubBench({"x32": "ENOSYS", "i386": 0})),
        ("socket-families-limited", StubBench({"1": "DONE", "40": "DONE"})),
        ("no-terminal-injection", StubBench({"tty": "DONE"})),
        ("no-terminal-injection", StubBench({"tty": "ENXIO", "TIOCSTI": "DONE"})),
        (
            "terminals-are-its-own",
            StubBench(stdout=OTHERS_TERMINAL),
        ),
        ("kernel-settings-read-only", StubBench(["/proc/sys/kernel/core_pattern"])),
        ("no-kernel-memory-or-log", StubBench({"devices": ["mem"], "opened": [], "log": -1})),
    ],
)
def test_broken_claim_is_noticed(claim: str, bench: StubBench) -> None:
    """On a host, or with a mistake of ours, that lets it through."""
    assert notices(ATTEMPTS, claim, bench)
