"""The files that pages load: ours and, under `vendor/`, others' as they publish them. Nothing comes from elsewhere.

A page names a file with a digest of its content, so a browser may keep it for ever and never has an old one.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

from starlette.responses import Response

from hotbed.errors import NotFound

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = (
    "hotbed.css",
    "hotbed.js",
    "hotbed.svg",
    "vendor/htmx.min.js",
    "vendor/uPlot.iife.min.js",
    "vendor/uPlot.min.css",
)


@lru_cache(maxsize=len(NAMES))
def content(name: str) -> bytes:
    """A file's bytes. Raises `NotFound` for what is not in the list."""
    if name not in NAMES:
        raise NotFound(f"no file {name[:80]!r}")
    return files("hotbed.dashboard").joinpath("static", *name.split("/")).read_bytes()


@lru_cache(maxsize=len(NAMES))
def url(name: str) -> str:
    """Where a page finds it."""
    return f"/static/{name}?v={hashlib.sha256(content(name)).hexdigest()[:12]}"


def response(name: str) -> Response:
    """The file as an answer."""
    headers = {
        "cache-control": "public, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    }
    return Response(content(name), headers=headers, media_type=TYPES[name.rpartition(".")[2]])
