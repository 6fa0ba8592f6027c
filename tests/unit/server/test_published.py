"""The published wires as ASGI routes."""

from __future__ import annotations

import json

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, QuotaExceeded
from hotbed.node.tenants import Caller, Tenant, Tier
from hotbed.server.published import Refused, json_object, refusing
from hotbed.wire import collimate


def test_no_body_is_an_empty_one() -> None:
    """Some requests of the client have none."""
    assert json_object(b"") == {}


@pytest.mark.parametrize("raw", [b"{", b"[]", b"3", b"\xff", b'"\\ud800"'])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    """In words."""
    with pytest.raises(InvalidRequest, match="JSON"):
        json_object(raw)


def test_a_refusal_is_said_in_both_envelopes() -> None:
    """With the status and the time that the client knows."""
    answer = refusing(collimate.GATEWAY_CODES, collimate.SANDBOX)(AtCapacity("full", retry_after_s=1.5), None)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert json.loads(bytes(answer.body)) == {
        "error": "full",
        "error_code": "at_capacity",
        "code": "at_capacity",
        "message": "full",
    }

    own = refusing(collimate.DAEMON_CODES, collimate.SESSION)(Refused(404, "no_such_session", "gone"), None)
    assert (own.status_code, json.loads(bytes(own.body))["error_code"]) == (404, "no_such_session")


def test_a_demo_tenants_quota_has_the_code_that_its_client_shows() -> None:
    """On the gateway's wire only."""
    caller = Caller(tenant=Tenant("tiny", Tier(name="demo")), scopes=frozenset({"run"}), key_id="1")
    told = refusing(collimate.GATEWAY_CODES, collimate.SANDBOX)(QuotaExceeded("no more"), caller)

    assert json.loads(bytes(told.body))["code"] == "demo_tier_limit"
