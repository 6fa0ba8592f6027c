"""hotbed backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.node.keys.store import KeyStore
from tests.unit.cli.conftest import Hotbed


def test_what_was_copied_is_named(hotbed: Hotbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: a second time is a mistake."""
    KeyStore(tmp_path / "home").close()
    monkeypatch.setenv("HOTBED_HOME", str(tmp_path / "home"))
    first, second = hotbed("backup", str(tmp_path / "copy")), hotbed("backup", str(tmp_path / "copy"))

    assert [Path(line).name for line in first.out.splitlines()] == ["keys.db", "keys.pepper"]
    assert second.code == 2
    monkeypatch.setenv("HOTBED_DATABASE", "postgresql:///x")
    assert "pg_dump" in hotbed("backup", str(tmp_path / "other")).err
