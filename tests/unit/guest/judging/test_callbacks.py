"""What of the tests' objects a candidate can reach."""

from __future__ import annotations

import functools
import io
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from hotbed.guest.judging import callbacks


class Twice:
    def __call__(self, value: int) -> int:
        return 2 * value


class Steps:
    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (len, "f"), (lambda: 0, "f"), (functools.partial(int), "f"), (int, "f"), ([].append, "f"),
        ((x for x in [0]), "i"), (iter([]), "i"), (zip(), "i"), (Steps(), "o"), (io.StringIO(), "o"), (Twice(), "k"),
        (mock.Mock(), "k"), (object(), "o"), (types.ModuleType("m"), "o"),
    ],
)  # fmt: skip
def test_each_value_has_its_kind(value: object, kind: str) -> None:
    """An iterator that is more than that, a file say, is an object."""
    assert callbacks.kind(value) == kind


@pytest.mark.parametrize("kind", ["f", "i"])
def test_functions_and_iterators_have_no_attributes(kind: str) -> None:
    """They can be called, or advanced."""
    assert len(callbacks.ALLOWED[kind]) == 1


def test_replaced_streams_are_noticed_once() -> None:
    """Each change is told when it is met, and so is its end."""
    found = callbacks.Surroundings()
    assert not found.changed()
    text = io.StringIO()
    with mock.patch("sys.stdout", text), mock.patch("builtins.input", lambda: "x"):
        assert found.changed() and not found.changed()
        now: dict[str, Any] = found.replaced()
        now["stdout"]("abc")
        assert sorted(now) == ["input", "stdout"] and now["input"]() == "x" and text.getvalue() == "abc"

    assert found.changed() and found.replaced() == {}


def test_what_is_written_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that takes over its channel can write for as long as it has time."""
    monkeypatch.setattr(callbacks, "WRITTEN_LIMIT", 10)
    found, text = callbacks.Surroundings(), io.StringIO()
    with mock.patch("sys.stderr", text):
        assert found.changed()
        write = found.replaced()["stderr"]
        write("12345")
        with pytest.raises(ValueError, match="more output"):
            write("1234567")

    assert text.getvalue() == "12345"
