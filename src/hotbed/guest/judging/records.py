"""Named tuples: they cross as tuples whose elements have names, too.

The class that comes out is made here, of the names alone: nothing of the sender's class is in it.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Tuple

_LIMIT = 100  # fields
_CACHE_LIMIT = 200
_cache: Dict[Tuple[str, ...], type] = {}


def pack(value: Any) -> Optional[List[Any]]:
    """[name, fields, values] of a named tuple, else None."""
    fields = getattr(type(value), "_fields", None)
    if type(fields) is not tuple or len(fields) != tuple.__len__(value) or not all(map(_is_name, fields)):
        return None
    return [type(value).__name__[:80], list(fields), list(tuple.__iter__(value))] if len(fields) <= _LIMIT else None


def _is_name(field: Any) -> bool:
    return type(field) is str and field.isidentifier() and not field.startswith("_")


def unpack(name: Any, fields: Any, values: List[Any]) -> Any:
    """The named tuple of parts that nobody vouches for. Raises `ValueError`."""
    good = type(name) is str and type(fields) is list and len(fields) == len(values) <= _LIMIT
    if not good or not all(map(_is_name, fields)):
        raise ValueError("not a named tuple")
    key = (name, *fields)
    if key not in _cache:
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        _cache[key] = _class(name.replace("\0", "")[:80] or "_", fields)
    return tuple.__new__(_cache[key], values)


def _class(name: str, fields: List[str]) -> type:
    found: Dict[str, Any] = {field: property(operator.itemgetter(index)) for index, field in enumerate(fields)}
    return type(name, (Record,), {**found, "_fields": tuple(fields), "__slots__": ()})


class Record(tuple):  # type: ignore[type-arg]  # Python 3.8 cannot subscript it
    """What named tuples have besides their fields."""

    __slots__ = ()
    _fields: Tuple[str, ...] = ()

    def _asdict(self) -> Dict[str, Any]:
        return dict(zip(self._fields, self))

    def _replace(self, **changes: Any) -> Any:
        if set(changes) - set(self._fields):
            raise ValueError(f"got unexpected field names: {sorted(set(changes) - set(self._fields))}")
        return tuple.__new__(type(self), [changes.get(name, value) for name, value in zip(self._fields, self)])

    def __repr__(self) -> str:
        return "{}({})".format(type(self).__name__, ", ".join(f"{n}={v!r}" for n, v in zip(self._fields, self)))
