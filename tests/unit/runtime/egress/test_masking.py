"""Keeping a secret out of the answer to a request that carried it."""

from __future__ import annotations

import pytest

from hotbed.runtime.egress.masking import Mask

TEXT = b'{"authorization": "Bearer s3cr3t-value", "again": "s3cr3t-value"}'
HIDDEN = b'{"authorization": "*******************", "again": "************"}'


@pytest.mark.parametrize("size", [1, 2, 7, 30, 1000])
def test_a_value_is_hidden_however_it_is_cut(size: int) -> None:
    """And nothing else changes, lengths least of all."""
    mask = Mask([b"Bearer s3cr3t-value"])

    got = b"".join(mask.feed(TEXT[at : at + size]) for at in range(0, len(TEXT), size)) + mask.rest()

    assert len(got) == len(TEXT) and b"s3cr3t" not in got
    assert got.replace(b"Bearer", b"******").replace(b"****** **", b"*********") == HIDDEN


def test_nothing_to_hide_changes_nothing() -> None:
    """Short words are no secrets."""
    mask = Mask([b"a b"])

    assert mask.feed(b"a b and so on") + mask.rest() == b"a b and so on"
