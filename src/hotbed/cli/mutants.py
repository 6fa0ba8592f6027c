"""Small mistakes put into a program, one at a time: what tests are there to catch.

Pure and deterministic: the same program always gives the same mutants. A mutant may mean the same as the original, so
one that is not caught is a question to the tests' author, not a proof.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A program with one mistake in it."""

    line: int
    what: str
    code: str


def mutants(source: str, *, limit: int) -> list[Mutant]:
    """At most so many mutants, spread over the whole program; none for text that is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    sites = list(_sites(tree))
    step = max(1.0, len(sites) / limit) if limit else 1.0
    chosen = [sites[int(place * step)] for place in range(min(limit, len(sites)))]
    made = (_made(tree, number, change, line, what) for number, change, line, what in chosen)
    return [mutant for mutant in made if mutant.code != ast.unparse(tree)]


_Change = Callable[[ast.AST], None]
_Site = tuple[int, _Change, int, str]


def _sites(tree: ast.AST) -> Iterator[_Site]:
    """Every place that can be changed: which node of the walk, and how."""
    for number, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        for change, what in _changes(node):
            yield number, change, line, what


def _changes(node: ast.AST) -> Iterator[tuple[_Change, str]]:
    if isinstance(node, ast.Compare):
        yield from _swap(node, "ops", node.ops[0])
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        yield from _swap(node, "op", node.op)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield lambda each: setattr(each, "value", None), "returns nothing"
    elif isinstance(node, (ast.If, ast.While)):
        yield _negate, "condition negated"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        yield _other_constant, f"{node.value!r} changed"


def _swap(node: ast.AST, name: str, operator: ast.AST) -> Iterator[tuple[_Change, str]]:
    other = _SWAPS.get(type(operator))
    if other is None:
        return

    def change(each: ast.AST) -> None:
        made = other()
        setattr(each, name, [made, *getattr(each, name)[1:]] if name == "ops" else made)

    yield change, f"{type(operator).__name__} becomes {other.__name__}"


def _negate(node: ast.AST) -> None:
    assert isinstance(node, (ast.If, ast.While))
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)


def _other_constant(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    node.value = not node.value if isinstance(node.value, bool) else int(str(node.value)) + 1


def _made(tree: ast.AST, number: int, change: _Change, line: int, what: str) -> Mutant:
    changed = copy.deepcopy(tree)
    node = next(each for place, each in enumerate(ast.walk(changed)) if place == number)
    change(node)
    return Mutant(line=line, what=what, code=ast.unparse(ast.fix_missing_locations(changed)))
