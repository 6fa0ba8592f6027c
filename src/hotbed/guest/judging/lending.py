"""The candidate's end of the calls: what it performs, which objects it lends, what it sees of the tests' objects."""

from __future__ import annotations

import inspect
import operator
import types
from typing import Any, Callable, Dict, List, NoReturn, Optional, Set

from . import calls, failures, loading, plain

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
                return loading.resolve(self._module, target)(*args, **kwargs)
            if op == "export":
                return loading.lookup(self._module, target)
            return OPERATIONS[op](*args, **kwargs)
        finally:
            if self._nesting == 1:
                loading.limit_cpu(0.0)

    def lend(self, value: Any) -> Any:
        if isinstance(value, _Borrowed):
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
        if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
            return [number, "f", getattr(value, "__name__", "")]
        if hasattr(type(value), "__next__"):
            return [number, "i"]
        return [number, "o", self.lend(type(value))["h"]]

    def borrow(self, tag: str, value: Any) -> Any:
        if tag == "y":
            return self._lent[value]
        if tag == "h":
            return _BORROWED[value[1]](self, value[0])
        raise plain.BadData("unknown tag")

    def origin(self, error: BaseException) -> Optional[int]:
        number: Optional[int] = getattr(error, "_hotbed_origin", None)
        return number

    def failed(self, op: str, names: List[str], origin: Any, args: List[Any]) -> NoReturn:
        error = failures.rebuild(op, names, args, {})
        if origin is not None:
            error._hotbed_origin = origin  # type: ignore[attr-defined]  # any exception takes attributes
        raise error


def _await(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)


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
        "exit": lambda manager, error: type(manager).__exit__(manager, type(error) if error else None, error, None),
        "await": _await,
        "send": lambda generator, value: generator.send(value),
    }
)
OPERATIONS.update({f.__name__: f for f in (abs, bool, complex, divmod, float, format, hash, int, iter, len, next)})
OPERATIONS.update({f.__name__: f for f in (repr, reversed, round, str)})


class _Borrowed:
    """Something of the tests, seen from the candidate."""

    def __init__(self, peer: CandidatePeer, number: int) -> None:
        self.__dict__["_peer"] = peer
        self.__dict__["_number"] = number

    def _hotbed_ask(self, op: str, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_peer"].ask(op, self.__dict__["_number"], args, kwargs)


class _Function(_Borrowed):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._hotbed_ask("call", *args, **kwargs)


class _Iterator(_Borrowed):
    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        return self._hotbed_ask("next")


class _Object(_Borrowed):
    """Public attributes and methods only: the tests' other objects stay out of reach."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._hotbed_ask("getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._hotbed_ask("setattr", name, value)

    def __len__(self) -> int:
        return int(self._hotbed_ask("len"))

    def __getitem__(self, key: Any) -> Any:
        return self._hotbed_ask("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._hotbed_ask("setitem", key, value)

    def __iter__(self) -> Any:
        return self._hotbed_ask("iter")

    def __contains__(self, key: Any) -> bool:
        return bool(self._hotbed_ask("contains", key))

    def __bool__(self) -> bool:
        return bool(self._hotbed_ask("bool"))

    def __str__(self) -> str:
        return str(self._hotbed_ask("str"))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, _Object) and other.__dict__["_number"] == self.__dict__["_number"]
        return same or bool(self._hotbed_ask("eq", other))

    def __hash__(self) -> int:
        return hash(self.__dict__["_number"])


_BORROWED: Dict[str, Callable[[CandidatePeer, int], Any]] = {"f": _Function, "i": _Iterator, "o": _Object}
