"""A window closes when it is used up and opens again when something was taken."""

from __future__ import annotations

from hotbed.guest.credit import FRAME_COST, Credit, cost


def test_credit_is_spent_by_bytes_and_by_frames() -> None:
    """A million frames of one byte must not be a million objects for the price of a million bytes."""
    credit = Credit(10 * FRAME_COST)
    for _ in range(10):
        assert not credit.is_spent()
        credit.spend(1)

    assert credit.is_spent()


def test_what_is_taken_is_credit_again() -> None:
    """Also after a frame that was larger than what was left."""
    credit = Credit(1000)
    credit.spend(5000)
    credit.give(cost(5000) - 1000)
    assert credit.is_spent()
    credit.give(1)

    assert not credit.is_spent()
