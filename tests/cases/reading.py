"""Case files as specs: one JSON object a line, in the format of `grading.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotbed.errors import InvalidSpec
from hotbed.grading import CallLimits, PropertyReward, StdioReward, UnitTestReward
from hotbed.grading.wire_form import Spec


def read_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file. A line ends at a newline: text may hold what else Unicode has for one."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def spec_from_case(case: Mapping[str, Any]) -> Spec:
    """The spec of one line. Raises `InvalidSpec` for one that is broken on purpose."""
    spec = case["spec"]
    try:
        return _READERS[spec["type"]](spec)
    except KeyError as error:
        raise InvalidSpec(f"{error} is missing, or known to nobody") from None


def candidates_of(case: Mapping[str, Any]) -> list[Any]:
    """What is graded: one candidate, its copies, the siblings of a group, or the steps of an episode."""
    if "candidates" in case:
        return list(case["candidates"])
    if "steps" in case:
        return list(case["steps"])
    one = case.get("code", case.get("candidate_files"))
    return [one] * int(case["spec"].get("batch", 1))


def _limits(spec: Mapping[str, Any], memory_mib: int = 1024) -> CallLimits:
    return CallLimits(cpu_s=spec["time_limit_s"], memory_mib=spec.get("memory_mb", memory_mib))


def _common(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"entry": spec.get("entry", ""), "prelude": spec.get("prelude", ""), "limits": _limits(spec)}


#: What the expression of an expected value may use.
_BUILTINS = {
    kind.__name__: kind
    for kind in (bool, bytearray, bytes, chr, complex, dict, float, frozenset, int, list, range, set, str, sum, tuple)
}


def _expected(case: Mapping[str, Any]) -> Any:
    for name in ("expected_expr", "expected_repr"):
        if name in case:
            return eval(case[name], {"__builtins__": _BUILTINS})
    return case["expected"]


def _cases(spec: Mapping[str, Any]) -> Spec:
    cases = [
        {"args": case["args"], "kwargs": case.get("kwargs", {}), "expected": _expected(case)} for case in spec["cases"]
    ]
    return UnitTestReward(tests=cases, compare=spec.get("compare", "default"), **_common(spec))


def _asserts(spec: Mapping[str, Any]) -> Spec:
    return UnitTestReward(tests=spec["tests"], style="script", **_common(spec))


def _property(spec: Mapping[str, Any]) -> Spec:
    return PropertyReward(
        reference=spec["reference"],
        generator=spec["generator"],
        k=spec["n"],
        seed=str(spec["seed"]),
        compare=spec.get("compare", "default"),
        **_common(spec),
    )


def _env(spec: Mapping[str, Any]) -> Spec:
    module = spec["candidate_path"].rpartition("/")[2].partition(".")[0]
    return UnitTestReward(files=spec["files"], style=spec["runner"], module=module, partial=True, limits=_limits(spec))


def _stdio(spec: Mapping[str, Any]) -> Spec:
    compare = {name: value for name, value in spec.get("compare", {}).items() if value}
    return StdioReward(cases=spec["cases"], compare=compare, limits=_limits(spec))  # type: ignore[arg-type]  # read from an object


_READERS = {"cases": _cases, "asserts": _asserts, "property": _property, "env": _env, "stdio": _stdio}
