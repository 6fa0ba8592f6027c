"""The fixtures that a judge brings along."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hotbed.guest.judging import minifixtures


def test_capsys_reads_and_forgets() -> None:
    """As pytest's does."""
    before = sys.stdout
    found = minifixtures.CapSys()
    try:
        print("one")  # noqa: T201  what is captured
        sys.stderr.write("two")
        assert tuple(found.readouterr()) == ("one\n", "two") and found.readouterr().out == ""
    finally:
        found.close()

    assert sys.stdout is before


class Thing:
    value = 1


def test_monkeypatch_undoes_everything(tmp_path: Path) -> None:
    """In reverse order, what was not there included."""
    here, items = os.getcwd(), {"a": 1, "b": 2}
    found = minifixtures.MonkeyPatch()
    found.setattr(Thing, "value", 2)
    found.setattr(Thing, "value", 3)
    found.setattr(Thing, "more", 4, raising=False)
    found.setattr("os.sep", "!")
    found.setitem(items, "a", 5)
    found.setitem(items, "c", 6)
    found.delitem(items, "b")
    found.delitem(items, "nope", raising=False)
    found.chdir(tmp_path)
    thing: Any = Thing
    assert (Thing.value, thing.more, os.sep, items) == (3, 4, "!", {"a": 5, "c": 6})

    found.close()

    assert (Thing.value, hasattr(Thing, "more"), os.sep, items) == (1, False, "/", {"a": 1, "b": 2})
    assert os.getcwd() == here


def test_monkeypatch_deletes_attributes() -> None:
    """And says so where there is none."""
    found = minifixtures.MonkeyPatch()
    found.delattr(Thing, "value")
    assert not hasattr(Thing, "value")
    found.delattr(Thing, "nope", raising=False)
    with pytest.raises(AttributeError):
        found.setattr(Thing, "nope", 1)
    with pytest.raises(AttributeError):
        found.delattr(Thing, "nope")

    found.close()

    assert Thing.value == 1


def test_a_directory_is_made() -> None:
    """A fresh one each time."""
    first, second = minifixtures.MAKE["tmp_path"](), minifixtures.MAKE["tmp_path"]()

    assert first.is_dir() and first != second
    first.rmdir()
    second.rmdir()
