"""The route table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import InvalidRequest
from hotbed.wire.routes import GET_SANDBOX, ROUTES


def test_names_and_operations_are_unique() -> None:
    """One table, read by both sides: a double would be served by one and called by the other."""
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_a_segment_cannot_leave_its_place() -> None:
    """An id with a slash in it is an unknown id, not another path."""
    assert GET_SANDBOX.url(id="a/../b?c") == "/v1/sandboxes/a%2F..%2Fb%3Fc"


def test_an_empty_id_is_no_id() -> None:
    """It was another path, at which nothing is served."""
    with pytest.raises(InvalidRequest, match="id is empty"):
        GET_SANDBOX.url(id="")


def test_the_page_lists_every_route() -> None:
    """docs/reference/http.md is what people without our client read."""
    page = (Path(__file__).parents[3] / "docs/reference/http.md").read_text()

    assert [route.name for route in ROUTES if f"| `{route.method} {route.path}` |" not in page] == []
