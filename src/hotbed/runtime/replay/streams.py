"""Reproducible bytes: one SHAKE-256 stream per label, all of one seed.

The format is fixed, because a ledger's rollouts are replayed by later versions: key = SHA-256("hotbed-replay-1" NUL
seed); block i of a label's stream = SHAKE-256(key, label, NUL, i as 8 little-endian bytes), 512 bytes long for i = 0
(most processes draw less) and 4096 for the others.
"""

from __future__ import annotations

import hashlib

from hotbed.guest.agent.pinning import CHECK_BYTES, ENTROPY_BYTES

SEED_BYTES = 32
_FORMAT = b"hotbed-replay-1\0"
_FIRST_BLOCK, _BLOCK = 512, 4096


class Stream:
    """Bytes in order. How they are asked for does not change what they are."""

    __slots__ = ("_at", "_data", "_index", "_prefix")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._index = 0
        self._data = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            self._extend(end - len(self._data))
            end = self._at + size
        data = self._data[self._at : end]
        self._at = end
        return data

    def _extend(self, missing: int) -> None:
        parts = [self._data[self._at :]]
        while missing > 0:
            length = _BLOCK if self._index else _FIRST_BLOCK
            parts.append(hashlib.shake_256(self._prefix + self._index.to_bytes(8, "little")).digest(length))
            self._index += 1
            missing -= length
        self._data = b"".join(parts)
        self._at = 0


class Streams:
    """Every stream of one seed."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
        self._key = hashlib.sha256(_FORMAT + seed).digest()

    def stream(self, label: str) -> Stream:
        """A stream from its beginning."""
        return Stream(self._key + label.encode() + b"\0")

    def fixed(self, label: str, size: int) -> bytes:
        """The first bytes of a stream: a value that the seed names."""
        return self.stream(label).take(size)


def first_draw(streams: Streams, root: int = 0) -> bytes:
    """What a process that pins itself draws first: a part that is compared, and a seed for its generators."""
    return streams.fixed(f"check:{root}", CHECK_BYTES + ENTROPY_BYTES)


def derive(seed: bytes, *path: str | int) -> bytes:
    """The seed of a part: an exec of a sandbox, a member of a group, a fork of a fork. Parts share nothing visible."""
    return Streams(seed).fixed("derive:" + "/".join(str(step) for step in path), SEED_BYTES)
