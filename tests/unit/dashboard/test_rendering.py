"""From values to HTML."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hotbed.dashboard.look import Page
from hotbed.dashboard.rendering import Renderer, ago, clock, milliseconds, percent, seconds, size

AROUND: dict[str, Any] = {"menu": [], "top": "/", "viewer": None, "signed_in": False}


def test_a_pages_values_are_text() -> None:
    """In the body, in attributes, and in the title."""
    evil = '<script>alert(1)</script>"onload="alert(1)'
    page = Page(template="failed.html", title=evil, values={"code": evil, "message": evil, "hint": evil})

    drawn = Renderer().html(page, AROUND)

    assert "<script>alert" not in drawn
    assert '"onload' not in drawn
    assert "&lt;script&gt;" in drawn


def test_a_page_keeps_to_itself() -> None:
    """No script but our files, no frame around it, no copy in a cache."""
    page = Page(template="sign_in.html", title="Sign in", values={"problem": ""}, status=401)

    response = Renderer().response(page, AROUND)

    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert (response.status_code, response.headers["cache-control"]) == (401, "no-store")


def test_a_part_is_drawn_without_what_is_around_it() -> None:
    """It goes into a page that is there already."""
    page = Page(template="failed.html", title="", values={"code": "c", "message": "m", "hint": ""}, part=True)

    assert "<html" not in Renderer().html(page, AROUND)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (seconds(0.04), "0.0 s"),
        (seconds(64), "64 s"),
        (seconds(3600), "60 min"),
        (seconds(10_000), "2.8 h"),
        (seconds(864_000), "10 d"),
        (seconds(None), "–"),
        (milliseconds(1.234), "1.23 ms"),
        (milliseconds(123.4), "123 ms"),
        (milliseconds(4200), "4.2 s"),
        (milliseconds(None), "–"),
        (size(12), "12 B"),
        (size(16 << 20), "16.0 MiB"),
        (size(5 << 50), "5120.0 TiB"),
        (percent(0.126), "13 %"),
        (percent(None), "–"),
        (clock(0), "1970-01-01T00:00:00Z"),
    ],
)
def test_quantities_have_the_unit_that_suits_them(shown: str, expected: str) -> None:
    """And what is not known is a dash."""
    assert shown == expected


def test_a_moment_of_the_future_was_now() -> None:
    """Clocks of two machines differ."""
    assert ago(time.time() + 100) == "0.0 s ago"
