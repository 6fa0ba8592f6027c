"""The ledger's tests run on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.node.state.database import Where


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """An empty place for a ledger."""
    if request.param == "sqlite":
        return tmp_path / "l.db"
    return str(request.getfixturevalue("postgres").new_database())
