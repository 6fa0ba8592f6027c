"""Which paths are pages."""

from __future__ import annotations

from hotbed.dashboard.app import GET, POST
from hotbed.dashboard.paths import TOPS, is_page
from hotbed.wire.routes import ROUTES


def test_pages_and_the_api_share_no_path() -> None:
    """Else a browser would get JSON, or a client a page."""
    assert [route.path for route in ROUTES if is_page(route.path)] == []
    assert not any(map(is_page, ("/health", "/exec", "/metrics", "/openapi.json", "/v1", "", "*", "x")))


def test_every_page_is_told_to_the_server() -> None:
    """A page that the server does not know of could not be reached."""
    tops = {path.split("/")[1] for path, _ in (*GET, *POST)}

    assert tops | {"sign-in", "sign-out", "static"} == TOPS
