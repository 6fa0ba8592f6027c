"""Template requests."""

from __future__ import annotations

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.templates import CreateTemplate


def test_a_template_needs_a_name() -> None:
    """It is how sandboxes ask for it."""
    with pytest.raises(InvalidRequest, match="name"):
        CreateTemplate(name="")
