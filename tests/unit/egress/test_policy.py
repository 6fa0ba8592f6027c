"""Policies in every form."""

from __future__ import annotations

import pytest

from hotbed.egress import presets
from hotbed.egress.policy import NONE, parse, with_deny
from hotbed.errors import InvalidRequest

LISTS = presets.load()


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({"mode": "open"}, "open"),
        ({"mode": "none"}, "none"),
        ({"allow": ["a.org"]}, "allowlist"),
        ({"mode": "allowlist", "allow": ["a.org"]}, "allowlist"),
        ({"allow": []}, "allowlist"),
        ({"deny": ["a.org"]}, "denylist"),
        ({"mode": "denylist", "deny": ["a.org"]}, "denylist"),
        ({"preset": "rl-leakage"}, "denylist"),
        ({"preset": "package-indexes"}, "allowlist"),
        ({"preset": ["package-indexes", "rl-leakage"]}, "allowlist"),
        ("open", "open"),
        ("model-hubs", "allowlist"),
        ({"bytes": 1000}, "open"),
    ],
)
def test_every_published_form_is_read(given: object, mode: str) -> None:
    """And the short ones."""
    policy = parse(given, LISTS)

    assert policy.mode == mode
    assert parse(policy.to_wire(), {}).to_wire() == policy.to_wire()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "egress is empty"),
        (7, "is an object or a word"),
        ({"mode": "closed"}, "'closed' is no mode"),
        ({"allowed": []}, "'allowed' is not known"),
        ({"allow": "a.org"}, "allow is a list"),
        ({"allow": ["ok.org", "b@d"]}, r"egress\.allow\[1\]: 'b@d'"),
        ({"preset": "nope"}, "there is no preset 'nope'"),
        ({"preset": [1]}, "preset is a name"),
        ({"mode": "open", "allow": ["a.org"]}, "takes no list"),
        ({"mode": "denylist", "allow": ["a.org"]}, "takes no allow list"),
        ({"mode": "open", "bytes": 0}, "bytes must be"),
        ({"mode": "open", "tape": True}, "'tape' is not known"),
        ({"mode": "open", "record": 1}, "record is true or false"),
        ({"mode": "none", "record": True}, "nothing to record"),
        ({"deny": [{"host": "a.org", "bytes": 7}]}, "are for entries of allow"),
        ({"allow": ["a.org"] * 5000}, "4096 at most"),
    ],
)
def test_what_is_wrong_is_named(given: object, named: str) -> None:
    """Before anything is made."""
    with pytest.raises(InvalidRequest, match=named):
        parse(given, LISTS)


def test_presets_are_not_looked_up_where_they_are_not_known() -> None:
    """The client checks the form; the node knows the names."""
    assert parse({"preset": "mine"}).presets == ("mine",)


def test_ports_that_are_named_are_known() -> None:
    """They are listened to."""
    assert parse({"allow": ["a.org:8443", "b.org:8443,22", "c.org"]}).ports == (22, 8443)


def test_more_can_be_refused() -> None:
    """A copy, not a change."""
    entry = parse({"deny": ["a.org"]}).deny

    assert with_deny(NONE, entry).deny == entry and NONE.deny == ()
