"""Cases of a spec: arguments, what is expected of them, and how much it weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotbed.errors import InvalidSpec
from hotbed.guest.judging import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call and its expected answer, all plain data."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expected: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        if type(self.weight) not in (int, float) or not math.isfinite(self.weight) or self.weight <= 0:
            raise InvalidSpec(f"weight must be a number above 0, not {self.weight!r}")
        for name, value in (("args", list(self.args)), ("kwargs", dict(self.kwargs)), ("expected", self.expected)):
            try:
                plain.pack(value)
            except (TypeError, ValueError) as error:
                raise InvalidSpec(
                    f"{name} is not plain data: {error}", hint="write such a test as an assert script"
                ) from None

    def to_wire(self) -> dict[str, Any]:
        """The tagged form: every builtin type survives."""
        call = _portable(plain.pack([list(self.args), dict(self.kwargs)]))
        found = {"call": call, "expected": _portable(plain.pack(self.expected))}
        return found if self.weight == 1.0 else {**found, "weight": self.weight}


def _portable(packed: Any) -> Any:
    """Packed data as any reader of JSON takes it, which knows neither NaN nor half a surrogate pair."""
    kind = type(packed)
    if kind is float and not math.isfinite(packed):
        return {"f": repr(packed)}
    if kind is str and any("\ud800" <= char <= "\udfff" for char in packed):
        return {"u": packed.encode("utf-8", "surrogatepass").hex()}
    if kind is list or kind is tuple:
        return [_portable(item) for item in packed]
    return {tag: _portable(item) for tag, item in packed.items()} if kind is dict else packed


def case_of(value: Case | Mapping[str, Any], where: str) -> Case:
    """A case as users write it: {"input": one argument, or a list of them} or {"args": [...], "kwargs": {...}}, with
    {"expected": ...}; or as it travels."""
    if isinstance(value, Case):
        return value
    if not isinstance(value, Mapping) or "expected" not in value:
        raise InvalidSpec(f"{where} needs 'expected', and 'args' or 'input'")
    try:
        return _read(value)
    except InvalidSpec as error:
        raise InvalidSpec(f"{where}: {error.message}", hint=error.hint) from None
    except (TypeError, ValueError) as error:
        raise InvalidSpec(f"{where} cannot be read: {error}") from None


def _read(value: Mapping[str, Any]) -> Case:
    weight = value.get("weight", 1.0)
    if "call" in value:
        args, kwargs = plain.unpack(value["call"])
        return Case(args=tuple(args), kwargs=kwargs, expected=plain.unpack(value["expected"]), weight=weight)
    if "args" in value:
        args = value["args"]
        if not isinstance(args, (list, tuple)):
            raise InvalidSpec(f"args must be a list, not {type(args).__name__}", hint="one argument is [argument]")
    elif "input" in value:
        given = value["input"]
        args = given if isinstance(given, list) else [given]
    else:
        raise InvalidSpec("neither 'args' nor 'input'")
    return Case(args=tuple(args), kwargs=value.get("kwargs", {}), expected=value["expected"], weight=weight)
