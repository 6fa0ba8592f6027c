"""Which names a test script wants from the candidate, and where its assert statements are."""

from __future__ import annotations

import _symtable  # type: ignore[import-not-found]  # what `symtable` wraps: an object for each name costs more than all else
import ast
import builtins
from typing import Any, Dict, Iterator, List, Set, Tuple, Type

HOOK = "__hotbed_checks__"
_DEFINES = _symtable.DEF_LOCAL | _symtable.DEF_IMPORT
_GLOBAL = (_symtable.GLOBAL_IMPLICIT, _symtable.GLOBAL_EXPLICIT)


def free_names(source: str) -> List[str]:
    """Names that a script reads and nobody in it defines: the candidate's."""
    top = _symtable.symtable(source, "tests.py", "exec")
    tables = list(_tables(top))
    defined = {name for name, flags in top.symbols.items() if flags & _DEFINES}
    defined |= {name for table in tables for name, flags in table.symbols.items() if _is_assigned_global(flags)}
    wanted = {
        name
        for table in tables
        for name, flags in table.symbols.items()
        if flags & _symtable.USE and (table is top or _scope(flags) in _GLOBAL)
    }
    return sorted(name for name in wanted - defined if not hasattr(builtins, name) and not name.startswith("__"))


def _tables(top: Any) -> Iterator[Any]:
    yield top
    for child in top.children:
        yield from _tables(child)


def _scope(flags: int) -> int:
    return int((flags >> _symtable.SCOPE_OFF) & _symtable.SCOPE_MASK)


def _is_assigned_global(flags: int) -> bool:
    """A name that a function assigns after `global`."""
    return bool(flags & _symtable.DEF_GLOBAL and flags & _symtable.DEF_LOCAL)


def test_functions(source: str) -> List[str]:
    """The test functions that stand in a source, as pytest names them."""
    found: List[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            found.append(node.name)
    return found


def instrument(source: str, body_of: str = "") -> Tuple[ast.Module, List[str], Set[int]]:
    """A script whose every assert statement reports, the names of these checks in order, and which are barriers.

    A check is begun before its statement and ended after it, so one that raises, or that a handler of the script
    swallows, stays open and has failed. `assert False` can only fail: it is a barrier, there not to be reached. Asserts
    that stand directly in the script (or in the function `body_of`) can be run on after a failure: the hook decides.
    """
    tree = ast.parse(source, "tests.py")
    names = _Instrument(body_of)
    tree.body = names.block(tree.body, direct=not body_of)
    return tree, names.names, names.barriers


class _Instrument:
    """One pass over one script."""

    def __init__(self, body_of: str) -> None:
        self.names: List[str] = []
        self.barriers: Set[int] = set()
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
        if _never_holds(statement.test):
            self.barriers.add(index)
        at = _place_of(statement)
        around = [_statement("begin", index, at), statement, _statement("end", index, at)]
        if not direct:
            return around
        handler = ast.ExceptHandler(
            type=ast.Attribute(value=_hook(at), attr="Failure", ctx=_LOAD, **at),
            name=None,
            body=[
                ast.If(test=_call("failed", index, at), body=[ast.Raise(exc=None, cause=None, **at)], orelse=[], **at)
            ],
            **at,
        )
        return [ast.Try(body=around, handlers=[handler], orelse=[], finalbody=[], **at)]


def _never_holds(test: ast.expr) -> bool:
    """Whether an assertion is there not to be reached: `assert False`, `assert not "it should have raised"`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Constant) and bool(test.operand.value)
    return isinstance(test, ast.Constant) and not test.value


_Place = Dict[str, Any]
_LOAD = ast.Load()


def _place_of(statement: ast.stmt) -> _Place:
    """Where a statement is; what is put around it says that it is there, too."""
    return {name: getattr(statement, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}


def _hook(at: _Place) -> ast.Name:
    return ast.Name(id=HOOK, ctx=_LOAD, **at)


def _call(what: str, index: int, at: _Place) -> ast.Call:
    function = ast.Attribute(value=_hook(at), attr=what, ctx=_LOAD, **at)
    return ast.Call(func=function, args=[ast.Constant(value=index, kind=None, **at)], keywords=[], **at)


def _statement(what: str, index: int, at: _Place) -> ast.stmt:
    return ast.Expr(value=_call(what, index, at), **at)


#: What holds statements without being one; `match` came with Python 3.10.
_HOLDERS: Tuple[Type[ast.AST], ...] = (ast.ExceptHandler, *([ast.match_case] if hasattr(ast, "match_case") else []))
