"""Which names a test script wants from the candidate, and where its assert statements are."""

from __future__ import annotations

import ast
import builtins
import symtable
from typing import Dict, Iterator, List, Set, Tuple, Type

HOOK = "__hotbed_checks__"


def free_names(source: str) -> List[str]:
    """Names that a script reads and nobody in it defines: the candidate's."""
    top = symtable.symtable(source, "tests.py", "exec")
    defined = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    defined |= _declared_global(top)
    wanted: Set[str] = set()
    for table in _tables(top):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                wanted.add(symbol.get_name())
    return sorted(name for name in wanted - defined if not hasattr(builtins, name) and not name.startswith("__"))


def _tables(top: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield top
    for child in top.get_children():
        yield from _tables(child)


def _declared_global(top: symtable.SymbolTable) -> Set[str]:
    """Names that a function assigns after `global`."""
    found = [symbol for table in _tables(top) for symbol in table.get_symbols()]
    return {symbol.get_name() for symbol in found if symbol.is_declared_global() and symbol.is_assigned()}


def instrument(source: str, body_of: str = "") -> Tuple[ast.Module, List[str]]:
    """A script whose every assert statement reports, and the names of these checks in order.

    A check is begun before its statement and ended after it, so one that raises, or that a handler of the script
    swallows, stays open and has failed. Asserts that stand directly in the script (or in the function `body_of`) can be
    run on after a failure: the hook decides.
    """
    tree = ast.parse(source, "tests.py")
    names = _Instrument(body_of)
    tree.body = names.block(tree.body, direct=not body_of)
    return ast.fix_missing_locations(tree), names.names


class _Instrument:
    """One pass over one script."""

    def __init__(self, body_of: str) -> None:
        self.names: List[str] = []
        self._body_of = body_of
        self._lines: Dict[int, int] = {}

    def block(self, statements: List[ast.stmt], direct: bool = False) -> List[ast.stmt]:
        """A list of statements with the reports around each assert."""
        found: List[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Assert):
                found += self._reported(statement, direct)
            else:
                self._inside(statement)
                found.append(statement)
        return found

    def _inside(self, node: ast.AST) -> None:
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == self._body_of
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value, direct=inner))
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, _HOLDERS):
                        self._inside(item)

    def _reported(self, statement: ast.Assert, direct: bool) -> List[ast.stmt]:
        index = len(self.names)
        self._lines[statement.lineno] = self._lines.get(statement.lineno, 0) + 1
        nth = self._lines[statement.lineno]
        self.names.append(f"line {statement.lineno}" + (f" ({nth})" if nth > 1 else ""))
        around = [self._hook("begin", index, statement), statement, self._hook("end", index, statement)]
        if not direct:
            return around
        handler = ast.ExceptHandler(
            type=ast.Attribute(value=_load(HOOK), attr="Failure", ctx=ast.Load()),
            name=None,
            body=[ast.If(test=_call("failed", index), body=[ast.Raise(exc=None, cause=None)], orelse=[])],
        )
        wrapped = ast.Try(body=around, handlers=[handler], orelse=[], finalbody=[])
        return [ast.copy_location(wrapped, statement)]

    def _hook(self, what: str, index: int, at: ast.stmt) -> ast.stmt:
        return ast.copy_location(ast.Expr(value=_call(what, index)), at)


def _load(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())


def _call(what: str, index: int) -> ast.Call:
    function = ast.Attribute(value=_load(HOOK), attr=what, ctx=ast.Load())
    return ast.Call(func=function, args=[ast.Constant(value=index, kind=None)], keywords=[])


#: What holds statements without being one; `match` came with Python 3.10.
_HOLDERS: Tuple[Type[ast.AST], ...] = (ast.ExceptHandler, *([ast.match_case] if hasattr(ast, "match_case") else []))
