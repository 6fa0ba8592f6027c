"""From a page's values to its bytes, and the headers that keep a page to itself.

Every value is escaped by the templates. The policy in the headers is the second wall: even a `<script>` that came
through would not run, since scripts and styles come from our own files only and never from a page.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from hotbed.dashboard import assets, text
from hotbed.dashboard.look import Page

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Renderer:
    """Draws pages. One for each server; templates are compiled when first used."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("hotbed.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            short=text.short,
            visible=text.visible,
            clock=clock,
            ago=ago,
            ms=milliseconds,
            seconds=seconds,
            size=size,
            percent=percent,
        )
        self._environment.globals.update(asset=assets.url)

    def html(self, page: Page, shared: Mapping[str, Any]) -> str:
        """A page, or a part of one, as HTML."""
        template = self._environment.get_template(page.template)
        return template.render({**shared, "title": page.title, "part": page.part, **page.values})

    def response(self, page: Page, shared: Mapping[str, Any]) -> HTMLResponse:
        """The same with its headers."""
        return HTMLResponse(self.html(page, shared), page.status, headers=dict(HEADERS))


def clock(at: float) -> str:
    """A moment as RFC 3339, UTC, to the second."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def ago(at: float) -> str:
    """How long ago a moment was."""
    return f"{seconds(max(0.0, time.time() - at))} ago"


def seconds(value: float | None) -> str:
    """A duration in the unit that suits it."""
    if value is None:
        return "–"
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if value < limit:
            shown = value / divisor
            return f"{shown:.1f} {unit}" if shown < 10 else f"{shown:.0f} {unit}"
    return f"{value / 86400:.0f} d"


def milliseconds(value: float | None) -> str:
    """A duration of milliseconds in the unit that suits it."""
    if value is None:
        return "–"
    if value < 1000:
        return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"
    return seconds(value / 1000)


def size(count: float) -> str:
    """Bytes in the unit that suits them."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes everything")


def percent(part: float | None) -> str:
    """A share of 1 in per cent."""
    return "–" if part is None else f"{part * 100:.0f} %"
