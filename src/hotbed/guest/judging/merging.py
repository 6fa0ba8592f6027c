"""What a callee did to its mutable arguments, carried over to the caller's."""

from __future__ import annotations

from collections import deque
from typing import Any, Sequence

from . import plain


def merge_arguments(args: Sequence[Any], now: Any) -> None:
    """Carry over what the callee did to mutable arguments. The objects stay the same ones, as in a local call."""
    if type(now) is not list or len(now) != len(args):
        raise plain.BadData("not the arguments")
    for old, new in zip(args, now):
        merge(old, new)


def merge(old: Any, new: Any) -> bool:
    """Make `old` equal to `new` in place; False where that is not possible."""
    kind = type(old)
    if kind is not type(new):
        return False
    if kind is list:
        kept = [o if merge(o, n) else n for o, n in zip(old, new)]
        old[:] = kept + new[len(kept) :]
    elif kind is dict:
        kept_items = {key: old[key] if key in old and merge(old[key], item) else item for key, item in new.items()}
        old.clear()
        old.update(kept_items)
    elif kind is set:
        old.clear()
        old.update(new)
    elif kind is deque:
        old.clear()
        old.extend(new)
    elif kind is bytearray:
        old[:] = new
    elif kind.__name__ == "ndarray" and old.shape == new.shape and old.dtype == new.dtype:
        old[...] = new
    else:
        return False
    return True
