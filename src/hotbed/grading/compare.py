"""How an answer is compared with the expected one. The judge does it: `guest/judging/comparing.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from hotbed.errors import InvalidSpec

Mode = Literal["default", "exact", "json", "float", "unordered", "checker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A comparison. `target="arg0"` compares what the call left in its first argument instead of what it returned.

    `checker` is Python source with `check(args, out, expected)`; it runs in the judge on plain data and must return
    True.
    """

    mode: Mode = "default"
    abs: float = 0.0
    rel: float = 0.0
    nan_equal: bool = False
    checker: str = ""
    target: str = ""

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidSpec(f"compare.mode {self.mode!r} is not one of {', '.join(get_args(Mode))}")
        for name in ("abs", "rel"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
                raise InvalidSpec(f"compare.{name} must be a finite number of at least 0, not {value!r}")
        if self.mode != "float" and (self.abs or self.rel):
            raise InvalidSpec(f"compare.abs and compare.rel need mode 'float', not {self.mode!r}")
        if (self.mode == "checker") != bool(self.checker):
            raise InvalidSpec("compare.mode 'checker' and compare.checker come together")
        if not re.fullmatch(r"(arg\d)?", self.target):
            raise InvalidSpec(f"compare.target {self.target!r} is neither empty nor 'arg0' to 'arg9'")

    def to_wire(self) -> dict[str, Any]:
        """The JSON object, defaults left out."""
        return {name: value for name, value in asdict(self).items() if name == "mode" or value}


def compare_of(value: Compare | str | Mapping[str, Any]) -> Compare:
    """A comparison as users write it: a mode, an object, or the dataclass."""
    if isinstance(value, Compare):
        return value
    if isinstance(value, str):
        return Compare(mode=value)  # type: ignore[arg-type]  # checked by the class
    known = {item.name for item in fields(Compare)}
    unknown = sorted(set(value) - known)
    if unknown:
        raise InvalidSpec(f"compare.{unknown[0]} is not known", hint=f"known: {', '.join(sorted(known))}")
    return Compare(**dict(value))
