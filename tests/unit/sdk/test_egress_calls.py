"""Questions about networks."""

from __future__ import annotations

import json

from hotbed.sdk import egress_calls


def test_a_policy_is_put_where_its_sandbox_is() -> None:
    """By its id."""
    call = egress_calls.change_egress("sandbox", {"mode": "open"})

    assert (call.method, call.target, call.sandbox_id) == ("PUT", "/v1/sandboxes/sandbox/egress", "sandbox")
    assert json.loads(call.body) == {"egress": {"mode": "open"}}


def test_a_page_of_attempts_is_asked_for_by_what_narrows_it() -> None:
    """And where the page before ended."""
    call = egress_calls.list_egress(limit=5, before=7, where={"verdict": "denied"})

    assert call.target == "/v1/egress?limit=5&before=7&verdict=denied"
