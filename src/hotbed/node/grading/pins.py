"""What held of a candidate's seed, over every process that was run for it."""

from __future__ import annotations

from dataclasses import replace

from hotbed.grading.verdicts import GradeResult
from hotbed.node.grading.members import Member

_UNKNOWN = "no-ack"


class Pins:
    """Of one candidate. The weakest acknowledgement counts, and what was pinned for each of its processes."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._acks: list[str] = []
        self._pinned: tuple[str, ...] | None = None

    def add(self, ack: str, pinned: tuple[str, ...]) -> None:
        """What the runtime says of one more process."""
        self._acks.append(ack)
        before = pinned if self._pinned is None else self._pinned
        self._pinned = tuple(name for name in before if name in pinned)

    def on(self, result: GradeResult) -> GradeResult:
        """A result with the seed, and what is known about it. It is never more than what all processes had."""
        return replace(result, seed=self._member.seed, seed_ack=self._ack(), pinned=self._held())

    def _ack(self) -> str:
        if self._member.determinism == "none":
            return "off"
        return "verified" if self._acks and set(self._acks) == {"verified"} else _UNKNOWN

    def _held(self) -> tuple[str, ...]:
        return self._pinned or () if self._ack() == "verified" else ()


def echoed(member: Member, result: GradeResult) -> GradeResult:
    """A result that names its seed, also where nothing came to run with it."""
    if result.seed is not None:
        return result
    return Pins(member).on(result)
