"""One seed for each episode, from the pool's or from a reset's.

An environment gets an int of 31 bits, which every generator in use takes: `random`, numpy's legacy and new ones, torch.
A number that a reset names is handed on as it is where that fits into 63 bits; of a longer one it gets a digest.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from hotbed.errors import InvalidSeed
from hotbed.wire.checks import seed_text

Seed = int | str | bytes
PoolSeed = Seed | None

_LIMIT = 1 << 31
_HANDED_ON = 1 << 63
_END = 1 << 256


def pool_seed(seed: PoolSeed) -> bytes:
    """A pool's 32 bytes. Without a seed, fresh ones."""
    return secrets.token_bytes(32) if seed is None else bytes.fromhex(seed_text(seed))


def episode_seed(seed: bytes, worker: int, episode: int) -> int:
    """The seed of a worker's episode: the same for the same three, and unrelated to any other's."""
    digest = hashlib.sha256(b"hotbed episode\0%b\0%d\0%d" % (seed, worker, episode)).digest()
    return int.from_bytes(digest[:8], "big") % _LIMIT


def given_seeds(seed: Seed | Sequence[Seed | None], n: int) -> list[int | None]:
    """The seeds of a reset that names some: a single one counts up over the workers, as gymnasium does it."""
    if not isinstance(seed, (list, tuple)):
        first = _number(seed)
        return [_handed((first + index) % _END) for index in range(n)]
    if len(seed) != n:
        raise InvalidSeed(f"{len(seed)} seeds for {n} workers", hint="one for each, or a single one for all")
    return [None if one is None else _handed(_number(one)) for one in seed]


def _number(seed: object) -> int:
    return int(seed_text(seed), 16)  # type: ignore[arg-type]  # it refuses what is no seed


def _handed(number: int) -> int:
    if number < _HANDED_ON:
        return number
    digest = hashlib.sha256(b"hotbed reset\0" + number.to_bytes(32, "big")).digest()
    return int.from_bytes(digest[:8], "big") % _LIMIT
