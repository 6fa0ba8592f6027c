"""Values of the standard library that cross by value."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
from typing import Any

import pytest

from hotbed.guest.judging import plain, plain_values


@pytest.mark.parametrize(
    "value",
    [
        decimal.Decimal("1.50"),
        fractions.Fraction(1, 3),
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc),
        datetime.date(2024, 2, 29),
        datetime.time(1, 2),
        datetime.timedelta(-1, 2, 3),
        collections.deque([1, [2], (3,)], 5),
    ],
)
def test_it_crosses_with_its_type(value: Any) -> None:
    """Honest programs return these, and tests compare them."""
    found = plain.decode(plain.encode([value]))[0]

    assert (type(found), found) == (type(value), value)


def test_a_class_of_the_same_name_is_not_taken_for_it() -> None:
    """The name does not decide; the type does."""
    impostor = type("Decimal", (), {"__module__": "decimal"})

    assert plain_values.pack(impostor()) is None


def test_only_the_table_is_ever_called() -> None:
    """A name in the data selects nothing else."""
    with pytest.raises(KeyError):
        plain_values.unpack(["eval", "1"])
