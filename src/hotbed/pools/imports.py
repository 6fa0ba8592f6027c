"""Which modules an env.py will import, read from its text without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

# Given by the environment server, or with effects that no template should have.
_NEVER = frozenset({"__future__", "hotbed", "boltzlabs", "this", "antigravity", "turtle", "tkinter", "idlelib"})


def preloadable(env_dir: Path, *, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The modules that env.py imports at its top, of the standard library or of the top-level names in `also`."""
    try:
        tree = ast.parse((env_dir / "env.py").read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()  # its author is told when it is loaded
    allowed = (sys.stdlib_module_names | set(also)) - _NEVER
    found = dict.fromkeys(name for statement in tree.body for name in _imported(statement))
    return tuple(name for name in found if _top(name) in allowed and not _is_own(env_dir, _top(name)))


def _imported(statement: ast.stmt) -> Iterable[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
        return [statement.module]
    return []


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_own(env_dir: Path, name: str) -> bool:
    """A module of the environment's own directory: it may change with every upload, and /env comes first."""
    return (env_dir / f"{name}.py").exists() or (env_dir / name).is_dir()
