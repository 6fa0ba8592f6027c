"""Grading what the ledger holds again: the same candidate, spec, seed and draws of the judge, in fresh sandboxes.

What is compared is the verdict: reward, status, and the outcome of every check. Messages may quote addresses and times
that mean nothing, so they are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hotbed.errors import ProtocolError
from hotbed.node.grading.groups import KEPT_CHECKS, Graders
from hotbed.node.leases import Lease
from hotbed.wire.grading import GradeLine, GradeRequest
from hotbed.wire.ledger import Difference


async def grade_again(graders: Graders, row: Mapping[str, Any], request: bytes, lease: Lease | None) -> GradeLine:
    """The new verdict on one recorded candidate. It is a line of the ledger, too."""
    asked = msgspec.json.decode(request)
    again = GradeRequest(
        spec=asked["spec"], codes=(asked["code"],), seeds=(asked["seed"],), determinism=row["determinism"]
    )
    found: GradeLine | None = None
    async for line in graders.grade(again, lease, judge_seed=row["details"]["judge_seed"]):
        if isinstance(line, GradeLine):
            found = line
    if found is None:
        raise ProtocolError("the group ended without a verdict")
    return found


def verdict_differences(row: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Difference]:
    """Every respect in which a recorded verdict and a new one differ."""
    timing = "timing" if "timeout" in (row["status"], result["status"]) else "unknown"
    for name in ("reward", "status"):
        if row[name] != result[name]:
            yield Difference(what=name, recorded=str(row[name]), replayed=str(result[name]), source=timing)
    old = [(name, outcome) for name, outcome, _ in row["details"]["checks"]]
    new = [(name, outcome) for name, outcome, _ in result["checks"][:KEPT_CHECKS]]
    if len(old) != len(new):
        yield Difference(what="checks", recorded=f"{len(old)} checks", replayed=f"{len(new)} checks", source=timing)
    for (name, before), (again, after) in zip(old, new, strict=False):
        if (name, before) != (again, after):
            yield Difference(what=f"check {name}", recorded=before, replayed=after, source=timing)
            return
