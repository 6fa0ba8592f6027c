"""One seed for each episode, from the pool's.

An environment gets an int of 31 bits, which every generator in use takes: `random`, numpy's legacy and new ones, torch.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from hotbed.errors import InvalidSeed

PoolSeed = int | str | bytes | None

_LIMIT = 1 << 31


def pool_seed(seed: PoolSeed) -> bytes:
    """A pool's 32 bytes. Without a seed, fresh ones."""
    if seed is None:
        return secrets.token_bytes(32)
    if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 256:
        return seed.to_bytes(32, "big")
    if isinstance(seed, (bytes, bytearray)) and len(seed) == 32:
        return bytes(seed)
    if isinstance(seed, str) and len(seed) == 64:
        try:
            return bytes.fromhex(seed)
        except ValueError:
            pass
    raise InvalidSeed(f"seed {str(seed)[:80]!r} is not usable", hint=str(InvalidSeed.__doc__))


def episode_seed(seed: bytes, worker: int, episode: int) -> int:
    """The seed of a worker's episode: the same for the same three, and unrelated to any other's."""
    digest = hashlib.sha256(b"hotbed episode\0%b\0%d\0%d" % (seed, worker, episode)).digest()
    return int.from_bytes(digest[:8], "big") % _LIMIT


def given_seeds(seed: int | Sequence[int | None], n: int) -> list[int | None]:
    """The seeds of a reset that names some: an int counts up over the workers, as gymnasium does it."""
    if isinstance(seed, int) and not isinstance(seed, bool):
        seeds: list[int | None] = [seed + index for index in range(n)]
    elif isinstance(seed, (list, tuple)):
        seeds = list(seed)
    else:
        raise InvalidSeed(f"a reset's seed is an int or a list of {n} ints, not {type(seed).__name__}")
    if len(seeds) != n:
        raise InvalidSeed(f"{len(seeds)} seeds for {n} workers")
    for one in seeds:
        if one is not None and (type(one) is not int or not 0 <= one < 1 << 63):
            raise InvalidSeed(f"the seed of an episode is an int in [0, 2**63), not {one!r}")
    return seeds
