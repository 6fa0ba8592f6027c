"""What a node adds to requests."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.egress.secrets import secret_of
from hotbed.errors import InvalidRequest

GIVEN = {"hosts": ["api.a.org", "*.b.org:8443"], "value": "Bearer abc"}


def test_a_secret_is_for_its_hosts() -> None:
    """At the port of TLS, unless it says another."""
    secret = secret_of("a", GIVEN)

    assert secret.is_for("api.a.org", 443) and secret.is_for("x.b.org", 8443)
    assert (
        not secret.is_for("api.a.org", 8443) and not secret.is_for("a.org", 443) and not secret.is_for("x.b.org", 443)
    )


def test_its_value_is_told_to_the_broker_only() -> None:
    """And read there as it was."""
    secret = secret_of("a", {**GIVEN, "header": "X-Key"})
    again = secret_of("secret", secret.to_wire())

    assert "Bearer" not in repr(secret) and (again.header, again.value, again.hosts[0].host) == (
        "x-key",
        "Bearer abc",
        "api.a.org",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": "a\r\nb: c"}, "no text that fits into a header"),
        ({"value": 7}, "no text that fits"),
        ({"hosts": []}, "at least one"),
        ({"hosts": ["10.0.0.0/8"]}, "names of hosts"),
        ({"hosts": "a.org"}, "list of hosts"),
        ({"header": "host"}, "no header that can be added"),
        ({"header": "a b"}, "no header that can be added"),
        ({"tenants": "t"}, "tenants is a list"),
        ({"token": "abc"}, "and nothing else"),
    ],
)
def test_what_cannot_be_added_is_refused_without_telling_it(change: dict[str, Any], words: str) -> None:
    """An error is printed and logged."""
    with pytest.raises(InvalidRequest, match=words) as refused:
        secret_of("a", {**GIVEN, **change})

    assert "abc" not in str(refused.value)


def test_a_name_is_one_word() -> None:
    """It stands in policies and in the ledger."""
    with pytest.raises(InvalidRequest, match="no name of a secret"):
        secret_of("a b", GIVEN)
