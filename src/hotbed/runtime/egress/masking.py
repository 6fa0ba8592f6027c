"""Keeping a value that was added to a request out of the answer to it: some hosts say back what they were sent.

What is masked keeps its length, so that nothing else of an answer changes. Only the value as it was sent is known here;
a host that encodes what it says back is not seen through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LEAST = 6  # a shorter word of a value is no secret, and would be masked all over an answer


class Mask:
    """For one answer, in pieces."""

    def __init__(self, values: Iterable[bytes]) -> None:
        words = {part for value in values for part in (value, *value.split()) if len(part) >= _LEAST}
        self._words: Sequence[bytes] = sorted(words, key=len, reverse=True)
        self._held = b""
        self._most = max(map(len, self._words), default=1) - 1

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._words)

    def feed(self, data: bytes) -> bytes:
        """What may be handed on by now: the end of a piece may be the beginning of the value."""
        data = self.whole(self._held + data)
        cut = max(0, len(data) - self._most)
        self._held = data[cut:]
        return data[:cut]

    def rest(self) -> bytes:
        """The last of it."""
        held, self._held = self._held, b""
        return held

    def whole(self, data: bytes) -> bytes:
        """All of something."""
        for word in self._words:
            data = data.replace(word, b"*" * len(word))
        return data
