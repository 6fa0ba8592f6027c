"""Which paths are pages. Read by the server before anything else of this room is loaded."""

from __future__ import annotations

TOPS = frozenset(
    {
        "",
        "groups",
        "keys",
        "parts",
        "plots.json",
        "pools",
        "rollouts",
        "sandboxes",
        "sign-in",
        "sign-out",
        "static",
        "templates",
        "waits",
    }
)


def is_page(path: str) -> bool:
    """Whether a path is a page's. The API's all begin with a word that no page has."""
    return path.split("/", 2)[1] in TOPS if path.startswith("/") else False
