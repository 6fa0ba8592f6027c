"""What was tried, counted in bounded space."""

from __future__ import annotations

from typing import Any

from hotbed.runtime.egress import tally
from hotbed.runtime.egress.tally import Tally


def denied(name: str) -> dict[str, Any]:
    """A refusal as a flow tells it."""
    return {"kind": "dns", "name": name, "port": 0, "verdict": "denied", "reason": "no"}


def test_alike_attempts_are_one_row_with_a_count() -> None:
    """Until the node has been told."""
    found = Tally()
    for _ in range(3):
        found.note(**denied("a.org"))

    (row,) = found.rows()

    assert (row["name"], row["count"]) == ("a.org", 3)
    assert found.rows() == []


def test_a_million_names_are_a_bounded_number_of_rows() -> None:
    """And what was not kept is said."""
    found = Tally()
    for number in range(tally.ROWS_LIMIT + 100):
        found.note(**denied(f"n{number}.org"))

    rows = found.rows()

    assert len(rows) == tally.ROWS_LIMIT + 1
    assert rows[-1]["kind"] == "more" and rows[-1]["count"] == 100
    assert len(found.take()["refused"]) == tally.REFUSED_SHOWN


def test_counts_are_those_since_the_last_time() -> None:
    """Each exec gets its own."""
    found = Tally()
    found.count(allowed=True)
    found.carried(up=3, down=5)
    found.note(**denied("a.org"), leak=True)

    first, second = found.take(), found.take()

    assert (first["allowed"], first["bytes_up"], first["bytes_down"], first["suspected_leak"]) == (1, 3, 5, True)
    assert (second["allowed"], second["bytes_up"], second["suspected_leak"]) == (0, 0, False)
    assert found.total_bytes == 8
    assert tally.total(second, first) == first


def test_what_was_told_in_pieces_adds_up() -> None:
    """In bounded space, too."""
    pieces = []
    for number in range(tally.REFUSED_SHOWN + 5):
        found = Tally()
        found.count(allowed=False)
        found.carried(up=1)
        found.note(**denied(f"n{number % (tally.REFUSED_SHOWN + 2)}.org"))
        pieces.append(found.take())

    whole = tally.total(*pieces)

    assert (whole["denied"], whole["bytes_up"], whole["suspected_leak"]) == (len(pieces), len(pieces), False)
    assert len(whole["refused"]) == tally.REFUSED_SHOWN
    assert [row["count"] for row in whole["refused"][:4]] == [2, 2, 2, 1]
    assert tally.total()["refused"] == []
