"""Which names are the candidate's, and where the checks are."""

from __future__ import annotations

import ast

import pytest

from hotbed.guest.judging.judge_names import free_names, instrument


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("assert f(1) == len([1])", ["f"]),
        ("import os\nfrom m import a as b\nx = 1\nos, b, x, f", ["f"]),
        ("def g(a, *b, **c):\n    return [f(d) for d in a] + h\n", ["f", "h"]),
        ("class T(Base):\n    x = f\n    def m(self): return x + g", ["Base", "f", "g", "x"]),
        ("def s():\n    global y\n    y = 1\ns()\nprint(y)", []),
        ("try:\n    f()\nexcept ValueError as e:\n    e\nfor i in f: i\nwith f as w: w", ["f"]),
        ("(lambda z: z + f)(1)\n__name__", ["f"]),
    ],
)
def test_names_that_nobody_in_the_script_defines(source: str, names: list[str]) -> None:
    """Imports, assignments, parameters, comprehensions and builtins are not the candidate's."""
    assert free_names(source) == names


def test_asserts_everywhere_are_found_in_order() -> None:
    """In every kind of block; several on a line are told apart."""
    source = (
        "assert 1; assert 2\nif 1:\n    assert 3\nelse:\n    assert 4\ntry:\n    assert 5\nexcept E:\n    assert 6\n"
        "finally:\n    assert 7\nclass C:\n    def m(self):\n        with x:\n            assert 8\n"
    )
    tree, names, barriers = instrument(source)

    assert barriers == set()
    assert names == ["line 1", "line 1 (2)", "line 3", "line 5", "line 7", "line 9", "line 11", "line 15"]
    assert ast.unparse(tree).count("begin(") == 8
    compile(tree, "tests.py", "exec")


def test_asserts_of_one_function_can_be_the_direct_ones() -> None:
    """HumanEval's check() goes on after a failure where partial credit is wanted."""
    tree, _, barriers = instrument(
        "assert 0\ndef check(c):\n    assert c(1)\n    for i in c(2):\n        assert i\n", "check"
    )

    assert ast.unparse(tree).count("failed(") == 1
    assert barriers == {0}
