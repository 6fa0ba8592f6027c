"""Both sides look in one place, and it is one that can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotbed.wire import places


def test_the_session_s_own_directory_comes_first() -> None:
    """Where there is one."""
    assert places.runtime_dir("/run/user/7") == "/run/user/7/hotbed"


def test_without_one_it_is_this_user_s_in_the_first_place_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may keep /tmp to root."""
    monkeypatch.setattr(places, "SCRATCH", (str(tmp_path / "none"), str(tmp_path)))

    assert places.runtime_dir("") == places.runtime_dir(None) == str(tmp_path / f"hotbed-{os.getuid()}")


def test_where_none_can_be_written_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes it says what is wrong."""
    monkeypatch.setattr(places, "SCRATCH", (str(tmp_path / "none"),))

    assert places.runtime_dir(None) == str(tmp_path / "none" / f"hotbed-{os.getuid()}")
