"""What is gone is told from what never was, for a while."""

from __future__ import annotations

from hotbed.node.remembered import Remembered


def test_the_last_so_many_are_known() -> None:
    gone = Remembered[str](2)
    for name in ("first", "second", "third"):
        gone.add(name, f"of {name}")

    assert [gone.get(name) for name in ("first", "second", "third", "never")] == [None, "of second", "of third", None]
