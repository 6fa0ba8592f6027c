"""Checks that both ends make on the same fields, so that a mistake is named before it travels."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from hotbed.errors import BadPath, InvalidRequest, InvalidSeed

_SEED = re.compile(r"[0-9a-fA-F]{64}")
_SEED_HINT = "a seed is 64 hex characters, an int in [0, 2**256), or 32 bytes"


def require(condition: bool, message: str, hint: str | None = None) -> None:
    """Raise `InvalidRequest` unless the condition holds."""
    if not condition:
        raise InvalidRequest(message, hint=hint)


def require_texts(name: str, values: Iterable[object]) -> None:
    """Refuse what is no text among these."""
    for value in values:
        require(isinstance(value, str), f"{name} holds {value!r:.80}, which is no text")


def require_mapping(name: str, value: object) -> None:
    """Refuse what is no mapping. None means "not given"."""
    require(value is None or isinstance(value, Mapping), f"{name} is {value!r:.80}", 'give {"NAME": "value"}')


def require_positive(name: str, value: float | None) -> None:
    """Refuse a number that is not finite and above 0. None means "not given"."""
    if value is None:
        return
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(number and math.isfinite(value) and value > 0, f"{name} must be a number above 0, not {value!r}")


def require_path(path: str) -> None:
    """Refuse a path that cannot name a file in a sandbox."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise BadPath(f"path {path!r} is not absolute", hint="give it as /work/name")
    try:
        usable = "\0" not in path and len(path.encode()) < 4096
    except UnicodeEncodeError:
        raise BadPath(
            f"path {path[:64]!r} is not Unicode text",
            hint="a file with such a name travels by download_dir, or an exec",
        ) from None
    if not usable:
        raise BadPath(f"path {path[:64]!r} is not usable", hint="paths hold no NUL and stay below 4096 bytes")


def segment(name: str, value: str) -> str:
    """A path's segment, percent-encoded. Refused if empty, for the path would be another one."""
    require(value != "", f"{name} is empty", hint="give the one that is meant")
    return quote(value, safe="")


def require_seed(seed: str | None) -> None:
    """Refuse a seed that is not 64 hex characters. None means "draw one"."""
    if seed is not None and not (isinstance(seed, str) and _SEED.fullmatch(seed)):
        raise InvalidSeed(f"seed {str(seed)[:80]!r} is not 64 hex characters", hint=_SEED_HINT)


def require_level(level: str | None) -> None:
    """Refuse a determinism that there is not. None means "not given"."""
    known = level is None or level in ("none", "rng", "full")
    require(known, f"determinism {str(level)[:80]!r} is not known", hint="it is none, rng or full")


def require_egress(egress: object) -> None:
    """Refuse a policy that cannot be read; its presets are looked up by the node. None means "not given"."""
    if egress is not None:
        from hotbed.egress.policy import parse  # with what it needs, milliseconds that most programs can do without

        parse(egress)


def egress_object(egress: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A policy in its object form: a word is a mode or the name of a preset."""
    if isinstance(egress, str):
        return {"mode": egress} if egress in ("none", "open") else {"preset": egress}
    return egress


def seed_text(seed: str | int | bytes) -> str:
    """The one wire form of a seed that a user gave in any of its forms."""
    if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 256:
        return f"{seed:064x}"
    if isinstance(seed, (bytes, bytearray)) and len(seed) == 32:
        return bytes(seed).hex()
    if isinstance(seed, str):
        require_seed(seed)
        return seed.lower()
    # An int may have more digits than Python writes out.
    shown = f"of {seed.bit_length()} bits" if type(seed) is int and seed.bit_length() > 512 else f"{seed!r:.200}"
    raise InvalidSeed(f"seed {shown} is not usable", hint=_SEED_HINT)


def fresh_seed() -> str:
    """A seed nobody can guess."""
    return os.urandom(32).hex()
