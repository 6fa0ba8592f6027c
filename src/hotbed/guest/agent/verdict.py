"""Which status an ended program gets, from what is known about its end. Pure.

What the agent did itself (deadline, output limit) is certain, and so is a count kept by a cgroup. Without one, `oom`
and `pids` are inferences: a SIGKILL that we did not send to a program that had nearly all its memory, and a refusal
that the program reports itself in the words of the C library or of its interpreter. They name the likely reason; they
are no evidence against anybody, for a program can say and do the same on purpose.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple, Optional, Tuple

_NEARLY = 0.8
_REFUSED_FORK = (b"Resource temporarily unavailable", b"can't start new thread", b"Cannot fork")
_NO_MEMORY = (b"\nMemoryError", b"Cannot allocate memory", b"std::bad_alloc")
_FULL_DISK = (b"No space left on device", b"Disk quota exceeded")


class Evidence(NamedTuple):
    """What is known when a program has ended."""

    cause: Optional[str] = None  # the status the agent itself decided on: timeout, output, oom, pids, signal
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    maxrss_kib: int = 0
    memory_mib: Optional[int] = None
    oom_kills: Optional[int] = None  # during this program, from a cgroup; None: no cgroup to ask
    fork_refusals: Optional[int] = None  # likewise
    disk_full: bool = False
    last_words: bytes = b""  # the end of stderr


Verdict = Tuple[str, Optional[int], Optional[int]]


def decode(status: int) -> Tuple[Optional[int], Optional[int]]:
    """Exit code and signal of a wait status; one of them is None."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def decide(evidence: Evidence) -> Verdict:
    """Status, exit code and signal."""
    if evidence.cause is not None:
        return evidence.cause, None, int(signal.SIGKILL)
    if evidence.exit_code == 0:
        return "ok", 0, None
    return reason(evidence) or ("exit" if evidence.signal is None else "signal"), evidence.exit_code, evidence.signal


def reason(evidence: Evidence) -> Optional[str]:
    """The limit that a failed program ran into, if one is likely."""
    if out_of_memory(evidence):
        return "oom"
    if evidence.fork_refusals or (evidence.fork_refusals is None and says(evidence, _REFUSED_FORK)):
        return "pids"
    if evidence.disk_full or says(evidence, _FULL_DISK):
        return "disk"
    return None


def out_of_memory(evidence: Evidence) -> bool:
    """Counted by the cgroup; without one, refused memory, or killed by somebody else with nearly all of it in use."""
    if evidence.oom_kills is not None:
        return evidence.oom_kills > 0
    if evidence.memory_mib is None:
        return False
    if evidence.signal != signal.SIGKILL:
        return says(evidence, _NO_MEMORY)
    return evidence.maxrss_kib >= evidence.memory_mib * 1024 * _NEARLY


def says(evidence: Evidence, phrases: Tuple[bytes, ...]) -> bool:
    """Whether the program's last words hold one of the phrases."""
    return any(phrase in evidence.last_words for phrase in phrases)
