"""A slot is given once, and comes back once."""

from __future__ import annotations

import pytest

from hotbed.errors import AtCapacity, BoltzUnavailable
from hotbed.pools.boltz import Slots


def test_a_share_is_what_was_asked_for_or_all_that_is_free() -> None:
    """And no more than there is."""
    slots = Slots(4)

    assert (slots.take(1), slots.take(None), slots.free) == (1, 3, 0)
    with pytest.raises(AtCapacity):
        slots.take(None)
    slots.give_back(3)
    assert slots.take(2) == 2
    with pytest.raises(AtCapacity, match="2 Boltz slots were asked for and 1 of 4 are free"):
        slots.take(2)


def test_more_than_the_node_has_will_never_be_free() -> None:
    """So it is no matter of waiting."""
    with pytest.raises(BoltzUnavailable, match="has 4 Boltz slots, not 5"):
        Slots(4).take(5)
    with pytest.raises(BoltzUnavailable, match="no Boltz slots") as caught:
        Slots(0).take(None)
    assert "--boltz-slots" in str(caught.value)
