"""How warm a template is, as figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """Spares that are `parked` and `frozen`, of how many `kept`; `forks` so far, and `hits`, which a spare served."""

    parked: int = 0
    frozen: int = 0
    kept: int = 0
    forks: int = 0
    hits: int = 0


def sum_of(each: Iterable[Warmth]) -> Warmth:
    """Of several templates."""
    every = tuple(each)
    return Warmth(**{item.name: sum(getattr(one, item.name) for one in every) for item in fields(Warmth)})
