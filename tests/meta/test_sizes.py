"""Size budgets, with a ledger for what is over a soft one.

The soft budgets are where a file or a function stops being readable in one sitting. What is over one is listed in
`size_ledger.txt` with its present size and a reason; an entry that no longer fits the file is an error, so that sizes
only go down. Function lengths leave the docstring out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.tree import ROOT, named, parsed, python_files

FILE_SOFT, FILE_HARD = 300, 400
FUNCTION_SOFT, FUNCTION_HARD = 30, 50
CLASS_HARD = 250
LEDGER = Path(__file__).with_name("size_ledger.txt")
SHIPPED = python_files(ROOT / "src", ROOT / "compat")
SUPPORT = python_files(ROOT / "tests", ROOT / "benchmarks", ROOT / "examples")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_nothing_shipped_is_over_a_hard_budget() -> None:
    """Files, functions and classes that are split by noun and verb never get there."""
    over = [
        f"{place} {size}"
        for place, kind, size in measured(SHIPPED)
        if size > {"file": FILE_HARD, "function": FUNCTION_HARD, "class": CLASS_HARD}[kind]
    ]

    assert over == []


def test_the_ledger_lists_exactly_what_is_over_a_soft_budget() -> None:
    """Grown, shrunk or mended: the ledger changes in the same commit."""
    soft = {"file": FILE_SOFT, "function": FUNCTION_SOFT, "class": CLASS_HARD}

    present = {place: size for place, kind, size in measured(SHIPPED) if size > soft[kind]}

    assert present == {place: size for place, size, _ in ledger()}


def test_each_ledger_entry_has_a_reason_and_its_place() -> None:
    """Sorted, so that two branches meet in the entry they both touch and in no other."""
    entries = ledger()

    assert [place for place, _, reason in entries if len(reason) < 10] == []
    assert [place for place, _, _ in entries] == sorted(place for place, _, _ in entries)


@pytest.mark.parametrize("path", SUPPORT, ids=named)
def test_tests_and_benchmarks_can_be_read_in_one_sitting(path: Path) -> None:
    """A test file over the hard budget tests two things."""
    lines = len(path.read_text().splitlines())

    assert lines <= FILE_HARD


def ledger() -> list[tuple[str, int, str]]:
    """(place, size, reason) of every entry."""
    rows = [line.split(maxsplit=2) for line in LEDGER.read_text().splitlines() if line and not line.startswith("#")]
    return [(place, int(size), reason) for place, size, reason in rows]


def measured(files: list[Path]) -> Iterator[tuple[str, str, int]]:
    """(place, kind, lines) of every file, function and class."""
    for file in files:
        yield named(file), "file", len(file.read_text().splitlines())
        for qualname, node in definitions(parsed(file), ()):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield f"{named(file)}::{qualname}", kind, length(node)


def definitions(parent: ast.AST, above: tuple[str, ...]) -> Iterator[tuple[str, Definition]]:
    """Every function and class below a node, with its qualified name."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Definition):
            yield ".".join((*above, node.name)), node
            yield from definitions(node, (*above, node.name))
        else:
            yield from definitions(node, above)


def length(node: Definition) -> int:
    """Lines from `def` to the end, without the docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines
