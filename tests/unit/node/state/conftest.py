"""Both databases, and a schema from before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hotbed.node.state.database import Where
from hotbed.node.state.migrations import migrations
from tests.unit.node.state.places import SCHEMA


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """An empty place."""
    if request.param == "sqlite":
        return tmp_path / "state.db"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the first migration of the schema alone: the Hotbed of before."""
    folder = tmp_path / "before" / "keys" / "migrations"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "0001_keys.sql").write_text(migrations(SCHEMA)[0])
    monkeypatch.syspath_prepend(str(tmp_path / "before"))
    monkeypatch.delitem(sys.modules, "keys", raising=False)
    return "keys"
