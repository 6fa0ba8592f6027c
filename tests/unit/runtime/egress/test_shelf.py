"""Which recordings the broker has."""

from __future__ import annotations

from typing import Any

from hotbed.runtime.egress.shelf import Shelf


class Link:
    """Hears what is posted."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def post(self, header: dict[str, Any], body: bytes = b"") -> None:
        """One frame."""
        self.said.append(f"{header['op']} {header['name']}{header.get('key', '')} {body.decode()}".strip())


def test_a_recording_is_sent_once_and_forgotten_with_its_last_sandbox() -> None:
    """And sent again to another broker."""
    link: Any = Link()
    shelf = Shelf()
    shelf.read = lambda name: [("1", b"one")]
    shelf.lend(link, 7, "a")
    shelf.lend(link, 8, "a")
    shelf.lend(link, 9, "")
    shelf.take_back(link, 7)
    assert link.said == ["recording a", "recorded a1 one"]

    shelf.take_back(link, 8)
    shelf.lend(link, 9, "a")
    shelf.lose()
    shelf.lend(link, 9, "a")

    assert link.said[2:] == ["forget a", *["recording a", "recorded a1 one"] * 2]
