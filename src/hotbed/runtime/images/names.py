"""An image's name: its registry, its path and its tag, and what may be left out of it."""

from __future__ import annotations

DEFAULT_HOST = "docker.io"


def host_of(name: str) -> str:
    """The registry that a name means."""
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DEFAULT_HOST


def whole(name: str) -> str:
    """The name with everything that may be left out."""
    host = host_of(name)
    path = name if host == DEFAULT_HOST else name[len(host) + 1 :]
    path = path.removeprefix(f"{DEFAULT_HOST}/")
    if host == DEFAULT_HOST and "/" not in path:
        path = f"library/{path}"
    return f"{host}/{path}" if ":" in path else f"{host}/{path}:latest"
