"""Notes on the routes."""

from __future__ import annotations

from hotbed.errors import Error
from hotbed.wire.reference import EVERYWHERE, NOTES
from hotbed.wire.routes import ROUTES


def test_every_route_has_a_note_and_no_note_is_left_over() -> None:
    """What is served is documented, and what is documented is served."""
    assert set(NOTES) == {route.name for route in ROUTES}


def test_the_codes_exist() -> None:
    """A code that nobody raises would be a promise about nothing."""
    known = {type(Error.from_wire(code, "")).code for note in NOTES.values() for code in (*EVERYWHERE, *note.errors)}

    assert known == {code for note in NOTES.values() for code in (*EVERYWHERE, *note.errors)}
