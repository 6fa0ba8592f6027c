"""A ticket opens one port of one sandbox, for a while."""

from __future__ import annotations

import time

import pytest

from hotbed.errors import Unauthorized
from hotbed.node.tickets import Tickets


def test_a_ticket_is_good_for_what_it_was_made_for() -> None:
    """As often as it is shown."""
    tickets = Tickets()
    ticket, expires = tickets.mint("box", 80, ttl_s=60)
    tickets.check(ticket, "box", 80)
    tickets.check(ticket, "box", 80)

    assert 58 < expires - time.time() <= 60


@pytest.mark.parametrize(("box", "port"), [("other", 80), ("box", 81), ("box 8", 0)])
def test_it_is_good_for_nothing_else(box: str, port: int) -> None:
    """Neither another sandbox nor another port."""
    tickets = Tickets()
    ticket, _ = tickets.mint("box", 80, ttl_s=60)

    with pytest.raises(Unauthorized):
        tickets.check(ticket, box, port)


def test_it_expires() -> None:
    """Its time is in the code too."""
    tickets = Tickets()
    ticket, _ = tickets.mint("box", 80, ttl_s=-2)
    with pytest.raises(Unauthorized):
        tickets.check(ticket, "box", 80)
    _, _, code = ticket.partition(".")
    with pytest.raises(Unauthorized):
        tickets.check(f"{int(time.time()) + 60:x}.{code}", "box", 80)


@pytest.mark.parametrize("ticket", ["", ".", "x.y", "ffffffffffffffff.00", "-1.00", "ä.ö"])
def test_what_is_no_ticket_is_refused(ticket: str) -> None:
    """Whatever it is."""
    with pytest.raises(Unauthorized):
        Tickets().check(ticket, "box", 80)


def test_another_node_made_it() -> None:
    """A secret lives as long as its node."""
    ticket, _ = Tickets().mint("box", 80, ttl_s=60)
    with pytest.raises(Unauthorized):
        Tickets().check(ticket, "box", 80)
