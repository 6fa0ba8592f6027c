"""Reward specs that are judged sealed: tests, or a reference with a generator.

The candidate answers calls with plain data; everything that is in a spec stays in the judge. Every spec has

    template     whose warm interpreter runs the candidate
    limits       per call and per candidate
    prelude      Python that runs in the candidate's module before its code: imports that the task takes for granted
    partial      reward = fraction of checks passed, instead of 1.0 for all of them and 0.0 otherwise
    to_wire()    the JSON object that `hotbed grade --spec` and the node read

and refuses at construction what could not be graded, naming the field and the fix.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hotbed.errors import InvalidSpec
from hotbed.grading import styles
from hotbed.grading.cases import Case, case_of
from hotbed.grading.compare import Compare, compare_of
from hotbed.grading.limits import CallLimits, limits_of
from hotbed.grading.sources import check_judge_seed, check_source, function_name, source_of

_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
_STYLES = ("auto", "script", "check", "unittest", "pytest", "cases")


def check_common(spec: Any) -> None:
    """The fields that every sealed spec has. Normalises what users may write in short."""
    set_field(spec, "compare", compare_of(spec.compare))
    set_field(spec, "limits", limits_of(spec.limits))
    check_judge_seed(spec.seed)
    if not isinstance(spec.template, str) or not spec.template:
        raise InvalidSpec(f"template must be the name of a template, not {spec.template!r}")
    if spec.entry and not _ENTRY.fullmatch(spec.entry):
        raise InvalidSpec(f"entry {spec.entry!r} is neither a name nor Class.method")
    for name in ("prelude", "support"):
        if getattr(spec, name, ""):
            check_source(name, getattr(spec, name))


def set_field(spec: Any, name: str, value: object) -> None:
    """Set a field of a frozen dataclass while it is being made."""
    object.__setattr__(spec, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestReward:
    """Tests: an assert script, HumanEval's `check(candidate)`, unittest or pytest source, or a list of cases.

    A case is {"input": argument or list of arguments, "expected": answer} or {"args": [...], "kwargs": {...}, ...}.
    `style` is found from the source unless given. `entry` names the function (or Class.method) that cases call and
    `check` receives. `support` is trusted code the tests build on (HumanEval's prompt): it runs in the judge, so that a
    helper the candidate redefines changes nothing. `files` are test files, in place of one source. `fresh` gives each
    case a process of its own (the default for cases). `live_operators` lets arithmetic and order between a candidate's
    object and plain data be the candidate's own; such a verdict is not sealed.
    """

    type: ClassVar[Literal["unit_tests"]] = "unit_tests"

    template: str = "python"
    tests: str | Sequence[Case | Mapping[str, Any]] = ""
    entry: str = ""
    style: Literal["auto", "script", "check", "unittest", "pytest", "cases"] = "auto"
    files: Mapping[str, str] = field(default_factory=dict)
    module: str = "solution"
    prelude: str = ""
    support: str = ""
    compare: Compare = field(default_factory=Compare)
    partial: bool | None = None
    fresh: bool = True
    live_operators: bool = False
    seed: str = ""
    limits: CallLimits = field(default_factory=CallLimits)

    def __post_init__(self) -> None:
        check_common(self)
        if self.style not in _STYLES:
            raise InvalidSpec(f"style {self.style!r} is not one of {', '.join(_STYLES)}")
        if not self.module.isidentifier():
            raise InvalidSpec(f"module {self.module!r} is not a module name")
        if isinstance(self.tests, str):
            self._check_source()
        else:
            self._check_cases()
        if self.partial is None:
            set_field(self, "partial", self.style == "cases")

    def _check_source(self) -> None:
        if self.style == "cases":
            raise InvalidSpec("tests must be a list of cases for style 'cases'")
        if not str(self.tests).strip() and not self.files:
            raise InvalidSpec("tests is empty", hint="an empty spec would pay everybody or nobody")
        for name, text in self.files.items():
            if name.endswith(".py"):
                check_source(f"files[{name!r}]", text)
        source = "\n\n".join(self.files.values()) if self.files else str(self.tests)
        set_field(self, "style", styles.detect(source) if self.style == "auto" else self.style)
        check_source("tests", str(self.tests))
        if self.style == "check" and not self.entry:
            raise InvalidSpec("entry is missing", hint="check(candidate) needs to know which function to check")
        if self.files and self.style not in ("unittest", "pytest"):
            raise InvalidSpec(f"files are for unittest and pytest, not for style {self.style!r}")

    def _check_cases(self) -> None:
        if self.style not in ("auto", "cases"):
            raise InvalidSpec(f"tests must be source text for style {self.style!r}")
        cases = tuple(case_of(case, f"tests[{index}]") for index, case in enumerate(self.tests))  # type: ignore[arg-type]  # not text here
        if not cases:
            raise InvalidSpec("tests is empty", hint="a spec without cases would pay everybody or nobody")
        set_field(self, "tests", cases)
        set_field(self, "style", "cases")
        set_field(self, "entry", self.entry or "solve")

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each case; empty for tests in source form."""
        return tuple(case.weight for case in self.cases)

    @property
    def cases(self) -> list[Case]:
        """The cases, as construction has made them; empty for tests in source form."""
        return [] if isinstance(self.tests, str) else [case for case in self.tests if isinstance(case, Case)]

    def judge_fields(self) -> dict[str, Any]:
        """What the judge needs besides the common fields."""
        return {
            "style": self.style,
            "tests": self.tests if isinstance(self.tests, str) else "",
            "cases": [case.to_wire() for case in self.cases],
            "files": dict(self.files),
            "support": self.support,
            "fresh": self.fresh,
            "live_operators": self.live_operators,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyReward:
    """Agreement with a reference on `k` random inputs.

    `generator` is `def generate(rng)` returning the list of arguments, or, in the published form, an expression for the
    one argument (`"random.randint(-50, 150)"`). `reference` is a function of the arguments, or, in the published form,
    the indented body of a function of `x`. Both are text, or functions that use nothing from outside themselves. They
    run in the judge; the inputs are the same for every sibling of a group and no candidate sees them before its call.
    """

    type: ClassVar[Literal["property"]] = "property"

    template: str = "python"
    reference: str | Callable[..., Any]
    generator: str | Callable[..., Any]
    k: int = 16
    entry: str = "solve"
    module: str = "solution"
    prelude: str = ""
    compare: Compare = field(default_factory=Compare)
    partial: bool = True
    fresh: bool = False
    seed: str = ""
    limits: CallLimits = field(default_factory=CallLimits)
    reference_name: str = ""
    generator_name: str = ""

    def __post_init__(self) -> None:
        check_common(self)
        if type(self.k) is not int or not 1 <= self.k <= 100_000:
            raise InvalidSpec(f"k must be from 1 to 100000, not {self.k!r}")
        if not self.entry:
            raise InvalidSpec("entry is missing")
        for name in ("reference", "generator"):
            source, found = source_of(name, getattr(self, name))
            if not source.strip():
                raise InvalidSpec(f"{name} is empty")
            set_field(self, name, source)
            set_field(self, f"{name}_name", found or getattr(self, f"{name}_name"))
        self._find_functions()

    def _find_functions(self) -> None:
        generator, reference = str(self.generator), str(self.reference)
        if not _compiles(generator.strip(), "eval"):
            wanted = (self.generator_name,) if self.generator_name else ("generate", "generator")
            set_field(self, "generator_name", function_name("generator", generator, wanted))
        if _compiles(reference, "exec"):
            wanted = (self.reference_name,) if self.reference_name else (self.entry.split(".")[-1], "reference")
            set_field(self, "reference_name", function_name("reference", reference, wanted))
        else:
            body = textwrap.indent(textwrap.dedent(reference), "    ")
            check_source("reference", "def reference(x):\n" + body)

    @property
    def weights(self) -> tuple[float, ...]:
        """All inputs weigh the same."""
        return ()

    def judge_fields(self) -> dict[str, Any]:
        """What the judge needs besides the common fields."""
        return {
            "style": "property",
            "reference": self.reference,
            "reference_name": self.reference_name,
            "generator": self.generator,
            "generator_name": self.generator_name,
            "k": self.k,
            "fresh": self.fresh,
            "live_operators": False,
        }


def _compiles(source: str, mode: Literal["eval", "exec"]) -> bool:
    try:
        compile(source, "source", mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
