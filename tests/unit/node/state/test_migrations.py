"""Numbered SQL files."""

from __future__ import annotations

import pytest

from hotbed.errors import Error
from hotbed.node.state.migrations import migrations, pending
from tests.unit.node.state.places import SCHEMA


def test_what_is_pending_is_what_comes_after_a_version() -> None:
    """Each once, in order."""
    found = migrations(SCHEMA)

    assert pending(SCHEMA, 0) == list(enumerate(found, 1))
    assert pending(SCHEMA, len(found)) == []
    assert pending(SCHEMA, 1) == list(enumerate(found[1:], 2))


def test_a_newer_version_is_refused_with_what_to_do() -> None:
    """A clear error instead of a guess."""
    with pytest.raises(Error, match="newer") as refusal:
        pending(SCHEMA, len(migrations(SCHEMA)) + 1)

    assert "nothing was changed" in str(refusal.value.hint)
