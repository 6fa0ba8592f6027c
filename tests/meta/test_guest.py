"""The guest runs inside images we do not choose: Python 3.8, the standard library, and nothing of ours outside it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.meta.tree import PACKAGE, imports, named, parsed, python_files

GUEST = PACKAGE / "guest"
FILES = python_files(GUEST)
#: Keywords of `dataclass` that 3.8 does not know.
NEW_KEYWORDS = {"slots", "kw_only"}
#: Standard library modules that 3.8 does not have.
NEW_MODULES = {"graphlib", "tomllib", "zoneinfo"}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_guest_parses_as_python_3_8(path: Path) -> None:
    """A `match`, a parenthesised `with` or an `except*` would be a syntax error in an older image."""
    ast.parse(path.read_text(), filename=str(path), feature_version=(3, 8))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_guest_imports_only_the_standard_library_and_itself(path: Path) -> None:
    """The guest directory is mounted alone: any other module of ours is not there."""
    depth = len(path.relative_to(GUEST).parts)
    wrong = [
        f"line {line}: {'.' * level}{module}"
        for line, level, module in imports(parsed(path))
        if level > depth or (level == 0 and module.split(".")[0] not in sys.stdlib_module_names - NEW_MODULES)
    ]

    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=named)
def test_guest_never_evaluates_an_annotation(path: Path) -> None:
    """`X | None` and `list[int]` are fine as long as nobody evaluates them before 3.10."""
    tree = parsed(path)
    annotated = any(isinstance(node, (ast.AnnAssign, ast.FunctionDef)) for node in ast.walk(tree))
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]

    assert not annotated or [alias.name for node in futures for alias in node.names] == ["annotations"]


@pytest.mark.parametrize("path", FILES, ids=named)
def test_guest_dataclasses_use_keywords_of_python_3_8(path: Path) -> None:
    """`slots=` and `kw_only=` came with 3.10."""
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    named_dataclass = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "dataclass"]

    assert [k.arg for call in named_dataclass for k in call.keywords if k.arg in NEW_KEYWORDS] == []
