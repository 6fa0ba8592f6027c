"""What a benchmark says: one number, what it is compared with, and the bar it has to clear."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. `ratio` is what `bar` and `stretch` speak of; `higher_is_better` says in which direction."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    of: str = ""
    bar: float | None = None
    stretch: float | None = None
    higher_is_better: bool = False
    note: str = ""

    @property
    def judged(self) -> float:
        """The number that the bar is about: the ratio where there is one, else the value."""
        return self.value if self.ratio is None else self.ratio

    @property
    def holds(self) -> bool | None:
        """Whether the bar holds; None without a bar."""
        return None if self.bar is None else self.is_past(self.bar)

    def is_past(self, mark: float) -> bool:
        """Whether the number is on the good side of a mark."""
        return self.judged >= mark if self.higher_is_better else self.judged <= mark

    def as_data(self) -> dict[str, Any]:
        """For a JSON line."""
        return {**asdict(self), "holds": self.holds}


def best_of(rounds: Iterable[list[Row]]) -> list[Row]:
    """For each name the round in which it came out best, with the spread of the others in its note."""
    by_name: dict[str, list[Row]] = {}
    for rows in rounds:
        for row in rows:
            by_name.setdefault(row.name, []).append(row)
    return [_best(rows) for rows in by_name.values()]


def _best(rows: list[Row]) -> Row:
    ordered = sorted(rows, key=lambda row: row.judged, reverse=rows[0].higher_is_better)
    if len(ordered) == 1:
        return ordered[0]
    spread = f"rounds {', '.join(f'{row.judged:.3g}' for row in rows)}"
    note = f"{ordered[0].note}; {spread}" if ordered[0].note else spread
    return replace(ordered[0], note=note)


def table(rows: Iterable[Row]) -> str:
    """Rows for a person."""
    lines = [("", "what", "value", "ratio", "bar", "stretch", "")]
    for row in rows:
        mark = {True: "ok", False: "MISSED", None: ""}[row.holds]
        sign = ">=" if row.higher_is_better else "<="
        lines.append(
            (
                mark,
                row.name,
                f"{row.value:.4g} {row.unit}",
                "" if row.ratio is None else f"{row.ratio:.2f} x {row.of}",
                "" if row.bar is None else f"{sign} {row.bar:g}",
                "" if row.stretch is None else f"{row.stretch:g}{' ok' if row.is_past(row.stretch) else ''}",
                row.note,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
