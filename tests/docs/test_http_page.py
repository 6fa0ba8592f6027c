"""The page about HTTP says what the route table says."""

from __future__ import annotations

from tests.docs.http_page import BEGIN, END, PAGE, rewritten


def test_the_table_is_the_route_tables() -> None:
    """Who adds a route or a field also runs `make docs`."""
    page = PAGE.read_text()

    assert (page.count(BEGIN), page.count(END)) == (1, 1)
    assert page == rewritten(page)
