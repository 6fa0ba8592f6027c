"""Live operations as values."""

from __future__ import annotations

from hotbed.sdk import live_calls
from hotbed.wire.live import ForkSandbox


def test_each_names_its_sandbox_and_takes_its_time() -> None:
    """A copy of much takes longer than other answers do."""
    made = (
        live_calls.fork("a b", ForkSandbox(count=2)),
        live_calls.snapshot("a b", end=True),
        live_calls.suspend("a b"),
        live_calls.resume("a b"),
    )

    assert {call.target.rpartition("/")[0] for call in made} == {"/v1/sandboxes/a%20b"}
    assert all(call.timeout_s > 120 and call.sandbox_id == "a b" and not call.idempotent for call in made)
    assert b'"count":2' in made[0].body.replace(b" ", b"")
