"""Specs as JSON: what travels to the node, and what `hotbed grade --spec spec.json` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, TypeAlias

from hotbed.errors import InvalidSpec
from hotbed.grading.programs import CheckerReward, CommandReward, StdioReward, made
from hotbed.grading.specs import PropertyReward, UnitTestReward

Spec: TypeAlias = UnitTestReward | PropertyReward | StdioReward | CheckerReward | CommandReward

KINDS: dict[str, Any] = {
    kind.type: kind for kind in (UnitTestReward, PropertyReward, StdioReward, CheckerReward, CommandReward)
}


def to_wire(spec: Spec) -> dict[str, Any]:
    """The JSON object of a spec; `from_wire` of it gives an equal one. Defaults are left out."""
    if type(spec) not in KINDS.values():
        raise InvalidSpec(f"{type(spec).__name__} is not a reward spec", hint=f"one of {', '.join(KINDS)}")
    found: dict[str, Any] = {"type": spec.type}
    for item in fields(spec):
        value = getattr(spec, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if value != default:
            found[item.name] = _written(value)
    return found


def _written(value: Any) -> Any:
    if hasattr(value, "to_wire"):
        return value.to_wire()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def from_wire(data: object) -> Spec:
    """The spec of a JSON object. Raises `InvalidSpec`, naming the field."""
    if not isinstance(data, Mapping):
        raise InvalidSpec(f"a spec is a JSON object, not a {type(data).__name__}")
    kind = KINDS.get(str(data.get("type", "unit_tests")))
    if kind is None:
        raise InvalidSpec(f"type {data.get('type')!r} is not one of {', '.join(KINDS)}")
    given = {name: value for name, value in data.items() if name != "type"}
    missing = [item.name for item in fields(kind) if _required(item) and item.name not in given]
    if missing:
        raise InvalidSpec(f"{missing[0]} is missing")
    try:
        spec: Spec = made(kind, given, kind.type)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidSpec(f"{kind.type}: {error}") from None
    return spec


def _required(item: Any) -> bool:
    return item.default is MISSING and item.default_factory is MISSING
