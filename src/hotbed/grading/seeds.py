"""Seeds of a group of siblings."""

from __future__ import annotations

import hashlib
import secrets
from typing import Literal

from hotbed.errors import InvalidSpec
from hotbed.wire.checks import seed_text

SeedMode = Literal["vanilla", "crn", "deterministic"]

DET_SEED = hashlib.sha256(b"hotbed deterministic seed").hexdigest()


def seed_from_key(key: str, salt: str = "") -> str:
    """The seed that a key always gives, as 64 hex characters."""
    return hashlib.sha256(f"{salt}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()


def group_seeds(n: int, mode: SeedMode = "crn", base_seed: str | int | bytes | None = None) -> list[str | None]:
    """One seed per sibling.

    `crn`: all the same (common random numbers), `base_seed` or a fresh one. `vanilla`: all different, derived from
    `base_seed` if given, else None each: the node draws. `deterministic`: the same for every group ever.
    """
    if type(n) is not int or n < 0:
        raise InvalidSpec(f"n must be a number of siblings, not {n!r}")
    base = None if base_seed is None else seed_text(base_seed)
    if mode == "crn":
        return [base or secrets.token_hex(32)] * n
    if mode == "deterministic":
        return [base or DET_SEED] * n
    if mode == "vanilla":
        return [None if base is None else seed_from_key(f"{base}/{index}") for index in range(n)]
    raise InvalidSpec(f"mode {mode!r} is not one of vanilla, crn, deterministic")


def judge_seed(group_seed: str | None) -> str:
    """What the judge draws from: one for the group, derived so that no candidate's own seed tells it."""
    return seed_from_key(group_seed or secrets.token_hex(32), salt="judge")
