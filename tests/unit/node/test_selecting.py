"""A selector means those sandboxes for which all that it names holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import InvalidRequest
from hotbed.node.selecting import selected
from hotbed.wire.sandboxes import Selector


def session(name: str, group: str = "", lease: str | None = None, **labels: str) -> Any:
    """Enough of a session."""
    held = SimpleNamespace(lease=SimpleNamespace(id=lease) if lease else None)
    return SimpleNamespace(id=name, group=group, labels=labels, held=held)


SESSIONS = [session("a", "g", "l1", k="1"), session("b", "g", "l2", k="2"), session("c", "h", None, k="1")]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"ids": ("a", "c", "x")}, ["a", "c"]),
        ({"group": "g"}, ["a", "b"]),
        ({"lease_id": "l2"}, ["b"]),
        ({"labels": {"k": "1"}}, ["a", "c"]),
        ({"labels": {"k": "1"}, "group": "g"}, ["a"]),
        ({"labels": {"z": "1"}}, []),
    ],
)
def test_everything_that_is_named_must_hold(selector: dict[str, Any], expected: list[str]) -> None:
    """Each narrows what the others mean."""
    assert [found.id for found in selected(SESSIONS, Selector(**selector))] == expected


@pytest.mark.parametrize("selector", [{}, {"group": ""}, {"ids": ()}])
def test_nothing_is_not_everything(selector: dict[str, Any]) -> None:
    """An empty list of ids must not end a whole node."""
    with pytest.raises(InvalidRequest, match="which"):
        Selector(**selector)
