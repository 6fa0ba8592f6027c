"""What kind of tests a source holds, by its structure alone."""

from __future__ import annotations

import ast
from typing import Literal

from hotbed.grading.sources import check_source

Style = Literal["script", "check", "unittest", "pytest"]


def detect(tests: str) -> Style:
    """unittest classes, pytest functions, HumanEval's `check(candidate)`, else an assert script."""
    tree = check_source("tests", tests)
    functions = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    has_functions = any(name.startswith("test") for name in functions) and not _runs_something(tree)
    if _imports(tree, "pytest") or has_functions:
        return "pytest"
    if any(isinstance(node, ast.ClassDef) and _is_test_case(node) for node in tree.body):
        return "unittest"
    if any(isinstance(node, ast.ClassDef) and node.name.startswith("Test") for node in tree.body):
        return "pytest"
    return "check" if "check" in functions and not _runs_something(tree) else "script"


def _runs_something(tree: ast.Module) -> bool:
    """Whether the source, when run, does more than define things."""
    return any(isinstance(node, (ast.Assert, ast.For, ast.While, ast.With)) or _is_call(node) for node in tree.body)


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split(".")[-1].endswith("TestCase") for base in node.bases)


def _imports(tree: ast.Module, module: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == module for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == module:
            return True
    return False
