"""A key, its text and its digest."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.keys.key import Key, digest_of, key_text, new_secret, parse


def key(**fields: Any) -> Key:
    """A key."""
    return Key(**{"tenant": "acme", "tier": "pro", "scopes": frozenset({"run"}), **fields})


def test_a_secret_is_256_bits_of_its_own() -> None:
    """So a fast hash of it is enough."""
    assert len(bytes.fromhex(new_secret())) == 32
    assert new_secret() != new_secret()


def test_both_shapes_of_the_text_are_read() -> None:
    """The published client reads its tier between the first two underscores."""
    made, secret = key(), new_secret()

    assert parse(key_text(made, secret)) == (made.id, secret)
    assert key_text(made, secret, collimate=True).split("_")[:2] == ["col", "pro"]
    assert parse(key_text(made, secret, collimate=True)) == (made.id, secret)


@pytest.mark.parametrize("text", ["", "hb__", "hb_0123abcd_" + "0" * 63, "col_pro_x_y", "hb_0123ABCD_" + "0" * 64])
def test_what_is_no_key_is_not_read(text: str) -> None:
    """It is not even looked up."""
    assert parse(text) is None


def test_a_digest_needs_the_pepper() -> None:
    """Who reads the database alone cannot test a key."""
    secret = new_secret()

    assert digest_of(secret, b"a" * 32) == digest_of(secret, b"a" * 32) != digest_of(secret, b"b" * 32)


def test_a_key_says_why_it_is_no_longer_good() -> None:
    """Expired, or revoked."""
    assert key().trouble(9e9) is None
    assert key(created_at=1.0, expires_at=10.0).trouble(10.0) == "it has expired"
    assert key(revoked_at=5.0).trouble(1.0) == "it was revoked"


@pytest.mark.parametrize(
    "fields",
    [{"tenant": "A"}, {"tenant": "a--b"}, {"tenant": ""}, {"tier": "../x"}, {"scopes": frozenset()},
     {"scopes": frozenset({"root"})}, {"created_at": 5.0, "expires_at": 5.0}],
)  # fmt: skip
def test_a_key_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """Names end up in ids and log lines."""
    with pytest.raises(InvalidRequest):
        key(**fields)
