"""The names of what is gone, so that for a while they are told from names of what never was."""

from __future__ import annotations

from typing import Generic, TypeVar

About = TypeVar("About")


class Remembered(Generic[About]):
    """The last so many that were added, each with what is still to be known of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._about: dict[str, About] = {}  # the oldest first

    def add(self, name: str, about: About) -> None:
        """One more is gone."""
        self._about[name] = about
        while len(self._about) > self._limit:
            del self._about[next(iter(self._about))]

    def get(self, name: str) -> About | None:
        """What is known of it; None if it never was, or is forgotten."""
        return self._about.get(name)
