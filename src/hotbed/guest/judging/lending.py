"""The candidate's end of the calls: what it performs, which objects it lends, what it sees of the tests' objects."""

from __future__ import annotations

import copy
import inspect
import operator
import os
import types
from typing import Any, Callable, Dict, List, NoReturn, Optional, Set

from . import borrowed, calls, failures, loading, plain

LOAD_CPU_S = 5.0  # for imports, on top of what a call may use


class CandidatePeer(calls.Peer):
    """Answers about one loaded program. Whatever it lends stays alive until the process ends."""

    answerable = (BaseException,)

    def __init__(self, channel: calls.Channel, program: loading.Program) -> None:
        super().__init__(channel, first=-1, step=-1)
        self._program = program
        self._module = types.ModuleType(program.module)
        self._lent: List[Any] = []
        self._numbers: Dict[int, int] = {}
        self._described: Set[int] = set()
        self._patched: Dict[str, Any] = {}
        self._surroundings = borrowed.Surroundings()

    def load(self) -> None:
        """Load the program and tell what the names asked for are."""
        loading.limit_cpu(self._program.cpu_s + LOAD_CPU_S)
        try:
            self._module = self._program.load()
            found = {name: loading.kind_of(self._module, name) for name in self._names()}
            message = b'[0,"k"]\n' + plain.encode(found)
        except BaseException as error:  # noqa: BLE001  a candidate may raise anything, and exit
            message = self._failure(0, error)
        loading.limit_cpu(0.0)
        self.channel.send(message)

    def _names(self) -> List[str]:
        if self._program.names != ("*",):
            return [name.split(".")[0] for name in self._program.names]
        public = getattr(self._module, "__all__", None)
        return list(public) if public else [name for name in self._module.__dict__ if not name.startswith("_")]

    def perform(self, op: str, target: Any, args: List[Any], kwargs: Dict[str, Any]) -> Any:
        """One question of the judge, under its CPU limit."""
        loading.limit_cpu(self._program.cpu_s)
        try:
            if op == "run":
                value = loading.resolve(self._module, target)(*args, **kwargs)
                return _Live(value) if id(value) in self._numbers else value
            own = getattr(self, "_" + op, None) if op in _OWN else None
            value = OPERATIONS[op](*args, **kwargs) if own is None else own(target, *args)
            made_here = op == "call" and isinstance(args[0], type) and _is_more_than_its_value(value)
            return _Live(value) if made_here or id(value) in self._numbers else value
        finally:
            if self._nesting == 1:
                self._surroundings.deliver()
                loading.limit_cpu(0.0)

    def _export(self, target: str) -> Any:
        return loading.lookup(self._module, target)

    def _surround(self, target: Any, now: Dict[str, Any]) -> None:
        self._surroundings.change(now)

    def _patch(self, target: str, value: Any) -> None:
        """A test puts something in place of a name of the module."""
        self._patched.setdefault(target, self._module.__dict__.get(target, _ABSENT))
        self._module.__dict__[target] = value

    def _unpatch(self, target: str) -> None:
        value = self._patched.pop(target, _ABSENT)
        if value is not _ABSENT:
            self._module.__dict__[target] = value
        else:
            self._module.__dict__.pop(target, None)

    def _exit(self, target: Any, manager: Any, *told: Any) -> bool:
        error = self._told(*told) if told else None
        return bool(type(manager).__exit__(manager, type(error) if told else None, error, None))

    def _aexit(self, target: Any, manager: Any, *told: Any) -> bool:
        error = self._told(*told) if told else None
        return bool(_await(type(manager).__aexit__(manager, type(error) if told else None, error, None)))

    def _throw(self, target: Any, generator: Any, *told: Any) -> Any:
        return generator.throw(self._told(*told))

    def _told(self, names: List[str], origin: Any, args: List[Any]) -> BaseException:
        """An exception of the tests; one of the module's own where its class is."""
        own = {
            name: value
            for name, value in self._module.__dict__.items()
            if isinstance(value, type) and issubclass(value, BaseException)
        }
        error = failures.rebuild("told", names, args, own)
        error._hotbed_origin = origin  # type: ignore[attr-defined]  # any exception takes attributes
        return error

    def lend(self, value: Any) -> Any:
        value = value.value if type(value) is _Live else value
        if isinstance(value, borrowed.Borrowed):
            return {"y": value.__dict__["_number"]}
        number = self._numbers.get(id(value))
        if number is None:
            number = len(self._lent)
            self._lent.append(value)
            self._numbers[id(value)] = number
        return {"h": self._description(number, value)}

    def _description(self, number: int, value: Any) -> List[Any]:
        if isinstance(value, type):
            if number in self._described:
                return [number, "c"]
            self._described.add(number)
            bases = [self.lend(base)["h"] for base in value.__bases__ if base.__module__ != "builtins"]
            errors = [kind.__name__ for kind in value.__mro__] if issubclass(value, BaseException) else []
            return [number, "c", value.__name__, bases, errors]
        if inspect.iscoroutine(value):
            return [number, "w"]
        if isinstance(value, types.AsyncGeneratorType):
            return [number, "a"]
        if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
            return [number, "f", getattr(value, "__name__", "")]
        if isinstance(value, types.GeneratorType):
            return [number, "g"]
        if hasattr(type(value), "__next__") and not type(value).__flags__ & _HEAP_TYPE:
            return [number, "i"]
        return [number, "o", self.lend(type(value))["h"]]

    def borrow(self, tag: str, value: Any) -> Any:
        if tag == "y":
            return self._lent[value]
        if tag == "h":
            return borrowed.KINDS[value[1]](self, value[0])
        raise plain.BadData("unknown tag")

    def origin(self, error: BaseException) -> Optional[int]:
        number: Optional[int] = getattr(error, "_hotbed_origin", None)
        return number

    def failed(
        self, op: str, names: List[str], origin: Any, args: List[Any], attributes: Optional[Dict[str, Any]] = None
    ) -> NoReturn:
        error = failures.rebuild(op, names, args, {}, attributes)
        if origin is not None:
            error._hotbed_origin = origin  # type: ignore[attr-defined]  # any exception takes attributes
        raise error


class _Live:
    """Marks an answer that is lent whatever it is derived from."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _is_more_than_its_value(value: Any) -> bool:
    """Whether a list, a text or the like has a class of the candidate with public names or behaviour of its own."""
    for kind in type(value).__mro__:
        if not kind.__flags__ & _HEAP_TYPE or kind.__module__ in _LIBRARY or hasattr(kind, "_fields"):
            return False
        if any(not name.startswith("_") or name in _BEHAVIOUR for name in vars(kind)):
            return issubclass(type(value), _BY_VALUE)
    return False


_BY_VALUE = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset, bytearray)
_BEHAVIOUR = frozenset(f"__{name}__" for name in "getitem setitem delitem missing contains len iter call".split())
_LIBRARY = frozenset(("collections", "enum", "typing"))


def _await(awaitable: Any) -> Any:
    """Its result. One loop for all: what one await leaves behind is there for the next."""
    import asyncio

    pid = os.getpid()  # the loop of a process that forked is not its child's
    if pid not in loops:
        loops[pid] = asyncio.new_event_loop()
        asyncio.set_event_loop(loops[pid])
    return loops[pid].run_until_complete(_whole(awaitable))


async def _whole(awaitable: Any) -> Any:
    return await awaitable


loops: Dict[int, Any] = {}
_ABSENT = object()
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that some Python statement has made
_OWN = frozenset(("export", "surround", "patch", "unpatch", "exit", "aexit", "throw"))


OPERATIONS: Dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        "add and_ contains delitem eq floordiv ge getitem gt index inv le lshift lt matmul mod mul ne neg or_ pos pow"
        " rshift setitem sub truediv xor"
    ).split()
}
OPERATIONS.update(
    {
        "call": lambda function, *args, **kwargs: function(*args, **kwargs),
        "getattr": getattr,
        "setattr": setattr,
        "delattr": delattr,
        "enter": lambda manager: type(manager).__enter__(manager),
        "aenter": lambda manager: _await(type(manager).__aenter__(manager)),
        "aiter": lambda items: type(items).__aiter__(items),
        "anext": lambda items: _await(type(items).__anext__(items)),
        "await": _await,
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "send": lambda generator, value: generator.send(value),
    }
)
OPERATIONS.update({f.__name__: f for f in (abs, bool, complex, divmod, float, format, hash, int, iter, len, next)})
OPERATIONS.update({f.__name__: f for f in (repr, reversed, round, str)})
