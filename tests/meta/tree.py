"""The repository as the meta tests see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = SRC / "hotbed"


def python_files(*tops: Path) -> list[Path]:
    """Every Python file below these directories, in order."""
    return sorted(file for top in tops for file in top.rglob("*.py"))


def named(path: Path) -> str:
    """A path as it is written in ledgers and messages."""
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), filename=str(path))


def imports(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """(line, relative level, module) of every import, wherever it stands, unless the code goes on without it."""
    spared = set(optional(tree))
    for node in ast.walk(tree):
        if node in spared:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.level, node.module or ""


def optional(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements whose ImportError is caught on the spot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(catches_import_error(handler) for handler in node.handlers):
            yield from node.body


def catches_import_error(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is `except ImportError`."""
    return isinstance(handler.type, ast.Name) and handler.type.id == "ImportError"
