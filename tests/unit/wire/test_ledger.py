"""What the ledger tells travels both codecs unchanged."""

from __future__ import annotations

import msgspec

from hotbed.wire.codec import from_wire, to_wire
from hotbed.wire.ledger import Difference, ReplayReport, RolloutDetail, RolloutList, RolloutRow

ROW = RolloutRow(id="rollout_1", seq=7, kind="rollout", at="2026-01-01T00:00:00.000Z", template="python", reward=0.5)
REPORT = ReplayReport(
    id="rollout_1",
    identical=False,
    replay_id="rollout_2",
    template="python",
    template_digest="sha256:00",
    seed="ab" * 32,
    determinism="rng",
    seed_ack="verified",
    differences=(Difference(what="stdout", offset=3, recorded="a", replayed="b", source="clock"),),
)


def test_both_codecs_agree() -> None:
    """The node writes with one, the client reads with the other."""
    detail = RolloutDetail(row=ROW, request={"code": "1"}, stdout_b64=b"\xff")
    for value in (ROW, RolloutList(rollouts=(ROW,), next=3), detail, REPORT):
        sent = msgspec.json.decode(msgspec.json.encode(value))

        assert from_wire(type(value), sent) == value
        assert from_wire(type(value), to_wire(value)) == value
