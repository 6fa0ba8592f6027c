"""Calls for operators."""

from __future__ import annotations

from hotbed.sdk.accounts import audit, usage


def test_what_is_not_given_is_not_asked() -> None:
    """The server has its defaults."""
    assert usage().target == "/v1/usage"
    assert usage(since="2026-11-01T00:00:00Z").target == "/v1/usage?since=2026-11-01T00%3A00%3A00Z"
    assert audit(limit=5).target == "/v1/audit?limit=5"
    assert audit(limit=5, before=9).target == "/v1/audit?limit=5&before=9"


def test_answers_are_read() -> None:
    """Into wire types."""
    assert usage().read(b'{"since":"a","until":"b","tenants":[{"tenant":"x","execs":2}]}').tenants[0].execs == 2
    assert audit(limit=1).read(b'{"actions":[]}').next is None
