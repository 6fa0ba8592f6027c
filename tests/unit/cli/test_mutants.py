"""Small mistakes, one at a time."""

from __future__ import annotations

import ast

from hotbed.cli.mutants import mutants

GOLD = """
def solve(xs, k):
    if k > len(xs) and xs:
        k = len(xs) - 1
    while not k:
        k += 2
    return xs[:k] if True else k * 3
"""


def test_every_mutant_is_another_program() -> None:
    """That parses, with one thing changed, named with its line."""
    found = mutants(GOLD, limit=100)
    codes = [mutant.code for mutant in found]

    assert len(codes) == len(set(codes)) > 8
    assert ast.unparse(ast.parse(GOLD)) not in codes
    assert all(ast.parse(code).body and mutant.line > 1 for code, mutant in zip(codes, found, strict=True))
    assert {"Gt becomes GtE", "And becomes Or", "condition negated", "returns nothing", "True changed"} <= {
        mutant.what for mutant in found
    }


def test_mutants_are_always_the_same_and_at_most_so_many() -> None:
    """Spread over the whole program."""
    few = mutants(GOLD, limit=4)

    assert few == mutants(GOLD, limit=4)
    assert len(few) == 4
    assert few[-1].line - few[0].line > 2
    assert mutants(GOLD, limit=0) == []


def test_what_is_not_python_has_none() -> None:
    """Specs grade programs in other languages, too."""
    assert mutants("int main() { return 0; }", limit=9) == []
    assert mutants("", limit=9) == []
