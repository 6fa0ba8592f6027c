"""Source code that a spec carries: as text, or as a function whose source can be read."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from hotbed.errors import InvalidSpec
from hotbed.guest.judging.judge_names import free_names


def source_of(field: str, value: str | Callable[..., Any]) -> tuple[str, str]:
    """(source, name of the function in it; empty for text)."""
    if isinstance(value, str):
        return value, ""
    if not inspect.isfunction(value) or value.__name__ == "<lambda>":
        raise InvalidSpec(f"{field} must be source text or a plain function", hint="a lambda has no name: use def")
    try:
        source = _without_annotations(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError):
        raise InvalidSpec(f"the source of {field} cannot be read", hint="pass its source as text") from None
    if value.__closure__:
        raise InvalidSpec(f"{field} uses variables of the function around it", hint="pass its source as text")
    outside = free_names(source)
    if outside:
        raise InvalidSpec(f"{field} uses {outside[0]}, defined outside of it", hint="import or define it inside")
    return source, value.__name__


def _without_annotations(source: str) -> str:
    """Annotations name things of the function's module, which is not there where the source will run."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree) + "\n"


def check_source(field: str, source: str) -> ast.Module:
    """Its syntax tree. A spec that does not parse is refused before anything runs."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidSpec(f"{field} is not valid Python: {error}") from None


def function_name(field: str, source: str, wanted: tuple[str, ...]) -> str:
    """The function to call in a source: one of the wanted names, else its only one."""
    names = [node.name for node in check_source(field, source).body if isinstance(node, ast.FunctionDef)]
    for name in wanted:
        if name in names:
            return name
    if len(names) == 1:
        return names[0]
    raise InvalidSpec(f"{field} defines {', '.join(names) or 'no function'}", hint=f"name one of them {wanted[0]}")


def check_judge_seed(seed: object) -> None:
    """A spec's own seed is any text. A number would be taken, but for 0, which would be none at all."""
    if not isinstance(seed, str):
        hint = "any text pins what the judge draws; a candidate's seed is given to grade"
        raise InvalidSpec(f"seed of a spec must be text, not {seed!r:.80}", hint=hint)
