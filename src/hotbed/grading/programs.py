"""Reward specs that run whole programs: stdin to stdout, or commands in a repository.

`StdioReward` is as sealed as the others: a run sees its own input and nothing else, and its output is compared outside.
`CommandReward` runs the tests in the sandbox that ran the candidate's bytes. Nothing printed, written or returned there
can be believed as the others can, so its verdicts are `trust="beside"`, always.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hotbed.errors import InvalidSpec
from hotbed.grading.limits import CallLimits, limits_of
from hotbed.grading.sources import check_judge_seed, check_source
from hotbed.grading.specs import set_field


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCompare:
    """How an output is compared: `tokens` line by line, blanks free at the ends and between; `exact` bytes.

    With `float_abs` or `float_rel` a token may differ where the expected one is written as a float. Ints stay exact.
    """

    mode: Literal["tokens", "exact"] = "tokens"
    float_abs: float = 0.0
    float_rel: float = 0.0

    def __post_init__(self) -> None:
        if self.mode not in ("tokens", "exact"):
            raise InvalidSpec(f"compare.mode {self.mode!r} is neither 'tokens' nor 'exact'")
        for name in ("float_abs", "float_rel"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
                raise InvalidSpec(f"compare.{name} must be a finite number of at least 0, not {value!r}")
        if self.mode == "exact" and (self.float_abs or self.float_rel):
            raise InvalidSpec("compare.float_abs and compare.float_rel need mode 'tokens'")


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCase:
    """One run: its input, the output wanted, and how much it weighs."""

    stdin: str = ""
    stdout: str = ""
    args: tuple[str, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioReward:
    """A program that reads stdin and writes stdout, each case in a fresh process.

    `command` runs it, after `build` if given (once per candidate); the candidate's code is in the file `path`. The
    default is Python. A non-zero exit status fails the case unless `any_exit`. `checker`, if given, is Python source
    with `check(input, output, answer)` that runs in the judge and must return True.
    """

    type: ClassVar[Literal["stdio"]] = "stdio"

    template: str = "python"
    cases: Sequence[StdioCase | Mapping[str, Any]] = ()
    command: str = "python3 -X utf8 main.py"
    build: str = ""
    path: str = "main.py"
    compare: OutputCompare = field(default_factory=OutputCompare)
    checker: str = ""
    any_exit: bool = False
    partial: bool = True
    seed: str = ""
    limits: CallLimits = field(default_factory=CallLimits)

    def __post_init__(self) -> None:
        set_field(self, "limits", limits_of(self.limits))
        check_judge_seed(self.seed)
        if isinstance(self.compare, Mapping):
            set_field(self, "compare", made(OutputCompare, self.compare, "compare"))
        cases = [one if isinstance(one, StdioCase) else _case(one, f"cases[{i}]") for i, one in enumerate(self.cases)]
        if not cases:
            raise InvalidSpec("cases is empty", hint="a spec without cases would pay everybody or nobody")
        set_field(self, "cases", tuple(cases))
        check_path("path", self.path)
        if self.checker:
            check_source("checker", self.checker)
        if not self.command.strip():
            raise InvalidSpec("command is empty")

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each case."""
        return tuple(case.weight for case in self.stdio_cases)

    @property
    def stdio_cases(self) -> list[StdioCase]:
        """The cases, as construction has made them."""
        return [case for case in self.cases if isinstance(case, StdioCase)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerReward(StdioReward):
    """A `StdioReward` whose `checker` decides: for tasks with more than one right answer."""

    type: ClassVar[Literal["checker"]] = "checker"  # type: ignore[assignment]  # narrowed on purpose

    def __post_init__(self) -> None:
        StdioReward.__post_init__(self)
        if not self.checker:
            raise InvalidSpec("checker is missing", hint="def check(input, output, answer): return True or False")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReward:
    """Tests of a whole repository, run where the candidate ran: `trust="beside"`.

    The candidate is files (or one file at `candidate_path`) or a patch (`patch=True`: applied with `git apply`). Then
    `setup` runs; then every process of it is killed, `hidden` files are placed over whatever is there, files in
    `protected` names (conftest.py, pytest.ini, ...) that the repository did not bring are removed, and `command` runs.
    With `expected` node ids, the reward is the fraction of them that the JUnit report at `report` says passed: a
    skipped, missing or extra test earns nothing. Without, it is 1.0 for exit status 0.
    """

    type: ClassVar[Literal["command"]] = "command"

    template: str = "python"
    command: str
    files: Mapping[str, str] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)
    candidate_path: str = "solution.py"
    patch: bool = False
    setup: str = ""
    cwd: str = "/work"
    expected: tuple[str, ...] = ()
    report: str = ""
    protected: tuple[str, ...] = (
        "conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py", "usercustomize.py",
        "pytest.py", "unittest.py", "_pytest.py",
    )  # fmt: skip
    partial: bool = False
    seed: str = ""
    limits: CallLimits = field(default_factory=lambda: CallLimits(cpu_s=120.0))

    def __post_init__(self) -> None:
        set_field(self, "limits", limits_of(self.limits))
        check_judge_seed(self.seed)
        set_field(self, "expected", tuple(self.expected))
        set_field(self, "protected", tuple(self.protected))
        if not self.command.strip():
            raise InvalidSpec("command is empty")
        if self.expected and not self.report:
            raise InvalidSpec("expected needs report", hint="the path of the JUnit file that the command writes")
        if len(set(self.expected)) != len(self.expected):
            raise InvalidSpec("expected names a test twice")
        for name in (*self.files, *self.hidden, self.candidate_path):
            check_path("files", name)

    @property
    def weights(self) -> tuple[float, ...]:
        """All tests weigh the same."""
        return ()


def check_path(field_name: str, path: str) -> None:
    """A path below the working directory."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or ".." in parts:
        raise InvalidSpec(f"{field_name}: {path!r} is not a path below the working directory")


def made(kind: Any, value: Mapping[str, Any], where: str) -> Any:
    """A dataclass from a mapping; unknown names are refused."""
    unknown = sorted(set(value) - set(kind.__dataclass_fields__))
    if unknown:
        hint = f"known: {', '.join(kind.__dataclass_fields__)}"
        if unknown[0] == "egress":
            hint = "grading has no network: bake what its tests need into the template"
        raise InvalidSpec(f"{where}.{unknown[0]} is not known", hint=hint)
    return kind(**dict(value))


def _case(value: Mapping[str, Any], where: str) -> StdioCase:
    case: StdioCase = made(StdioCase, value, where)
    for name in ("stdin", "stdout"):
        if not isinstance(getattr(case, name), str):
            raise InvalidSpec(f"{where}.{name} must be text, not {type(getattr(case, name)).__name__}")
    if type(case.weight) not in (int, float) or not math.isfinite(case.weight) or case.weight <= 0:
        raise InvalidSpec(f"{where}.weight must be a number above 0, not {case.weight!r}")
    set_field(case, "args", tuple(case.args))
    return case
