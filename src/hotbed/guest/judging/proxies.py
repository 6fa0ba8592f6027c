"""A candidate's live objects as the tests see them: stand-ins whose every operation asks the candidate.

Plain data crosses by value and is compared here. Anything else stays in the candidate's sandbox and is one of these:
a function, a class (a real class here, so that `isinstance` and `except` work), an instance, an iterator, a coroutine.

An instance is equal to nothing that is plain data: its class may claim what it likes. Where both operands are the
candidate's own objects the question is the candidate's to answer, and the verdict says so (`unsealed`). Arithmetic and
order against plain data would hand the test's value over and take the answer on trust (`abs(out - 1.5) < 1e-6`), so
they are refused unless the spec asks for them (`live_operators`), which also makes the verdict unsealed.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

from .proxy_functions import LIVE, Asker, Function, Items, askable

SELF = "_hotbed_self"  # as LIVE, in an instance


def live(value: Any) -> Any:
    """(peer, number) of a stand-in, else None. Never asks the candidate."""
    found = type.__getattribute__(value, "__dict__").get(LIVE) if isinstance(value, type) else None
    if found is None and isinstance(value, Instance):
        return object.__getattribute__(value, SELF)
    if found is None and isinstance(value, (Function, Items)):
        return value.__dict__[LIVE]
    return found


class ClassStub(type):
    """A class of the candidate."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return live(cls)[0].question("call", None, (cls, *args), kwargs)

    def __getattr__(cls, name: str) -> Any:
        return live(cls)[0].question("getattr", None, (cls, askable(name)))

    def __setattr__(cls, name: str, value: Any) -> None:
        found = live(cls)
        if found is None:  # one of our own, as this file makes it
            return type.__setattr__(cls, name, value)
        found[0].question("setattr", None, (cls, askable(name), value))

    def __delattr__(cls, name: str) -> None:
        live(cls)[0].question("delattr", None, (cls, askable(name)))

    def __getitem__(cls, key: Any) -> Any:
        return live(cls)[0].question("getitem", None, (cls, key))

    def __iter__(cls) -> Iterator[Any]:
        found: Iterator[Any] = live(cls)[0].question("iter", None, (cls,))
        return found

    def __len__(cls) -> int:
        found: int = _exactly(int, live(cls)[0].question("len", None, (cls,)))
        return found


class Instance(metaclass=ClassStub):
    """An instance of a class of the candidate. Made by `instance_of` only; has no `__dict__` but the candidate's."""

    __slots__ = (SELF,)

    def __getattr__(self, name: str) -> Any:
        return ask(self, "getattr", name if name in ("__dict__", "__doc__") else askable(name))

    def __setattr__(self, name: str, value: Any) -> None:
        ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        ask(self, "delattr", name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return _both_live(self, other, "==") and ask(self, "eq", other) is True

    def __ne__(self, other: object) -> bool:
        if self is other or not _both_live(self, other, "!="):
            return self is not other
        return ask(self, "ne", other) is True

    def __hash__(self) -> int:
        found: int = _exactly(int, ask(self, "hash")) if _named(self) else id(self)
        return found

    def __bool__(self) -> bool:
        return ask(self, "bool") is True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return object.__getattribute__(self, SELF)[0].question("call", None, (self, *args), kwargs)

    def __contains__(self, item: Any) -> bool:
        if not _named(self):
            raise TypeError("`in` on an object that the candidate returned is the candidate's own answer")
        return ask(self, "contains", item) is True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        peer = object.__getattribute__(self, SELF)[0]
        return ask(self, "exit", *(() if error is None else peer.told(error))) is True

    async def __aenter__(self) -> Any:
        return ask(self, "aenter")

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> bool:
        peer = object.__getattribute__(self, SELF)[0]
        return ask(self, "aexit", *(() if error is None else peer.told(error))) is True

    async def __anext__(self) -> Any:
        return ask(self, "anext")

    def __await__(self) -> Any:
        return coroutine(object.__getattribute__(self, SELF)[0], self).__await__()

    def __deepcopy__(self, memo: Any) -> Any:
        return ask(self, "deepcopy")

    def __repr__(self) -> str:
        found: str = _exactly(str, ask(self, "repr"))
        return found

    def __str__(self) -> str:
        found: str = _exactly(str, ask(self, "str"))
        return found

    def __format__(self, spec: str) -> str:
        found: str = _exactly(str, ask(self, "format", spec))
        return found

    def __len__(self) -> int:
        found: int = _exactly(int, ask(self, "len"))
        return found


def instance_of(kind: type, peer: Asker, number: int) -> Any:
    """The stand-in for one live object."""
    found: Any = object.__new__(kind)
    object.__setattr__(found, SELF, (peer, number))
    return found


def class_stub(name: str, bases: List[type], peer: Asker, number: int) -> Any:
    """The stand-in for one class; below its bases, so that `isinstance` and `issubclass` agree with the candidate's."""
    return ClassStub(
        name[:80].replace("\0", "") or "_", tuple(bases) or (Instance,), {LIVE: (peer, number), "__slots__": ()}
    )


async def coroutine(peer: Asker, reference: Any) -> Any:
    """A coroutine of the candidate: awaiting it runs it to its end over there."""
    return peer.question("await", None, (reference,))


def ask(instance: Any, op: str, *args: Any) -> Any:
    """One operation on a live object."""
    return object.__getattribute__(instance, SELF)[0].question(op, None, (instance, *args))


def _named(instance: Any) -> bool:
    """Whether the tests know this object's class by name: only then is its behaviour what they are about."""
    peer = object.__getattribute__(instance, SELF)[0]
    return any(LIVE in vars(kind) and peer.is_named(vars(kind)[LIVE][1]) for kind in type(instance).__mro__)


def _both_live(left: Any, right: Any, operation: str) -> bool:
    if not isinstance(right, (Instance, ClassStub)):
        return False
    peer = object.__getattribute__(left, SELF)[0]
    peer.unseal(f"the candidate's own {operation} compared two of its objects")
    return True


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"the candidate's object answered with a {type(value).__name__}, not {kind.__name__}")
    return value


def _forward(op: str) -> Callable[..., Any]:
    def operation(self: Any, *args: Any) -> Any:
        return ask(self, op, *args)

    return operation


def _forward_named(op: str) -> Callable[..., Any]:
    """Conversions: only of objects that the tests are about."""

    def operation(self: Any, *args: Any) -> Any:
        if not _named(self):
            raise TypeError("the candidate returned a live object where the tests want a plain value")
        return ask(self, op, *args)

    return operation


def _forward_operator(op: str, reflected: bool) -> Callable[..., Any]:
    def operation(self: Any, other: Any) -> Any:
        peer = object.__getattribute__(self, SELF)[0]
        if not isinstance(other, Instance) and not (peer.live_operators and _named(self)):
            raise TypeError(f"{op} between a candidate's object and plain data needs live_operators=True")
        peer.unseal(f"the candidate's own operators were trusted ({op})")
        return peer.question(op, None, (other, self) if reflected else (self, other))

    return operation


def _install() -> None:
    for op in "iter next aiter getitem setitem delitem enter reversed copy".split():
        setattr(Instance, f"__{op}__", _forward(op))
    for op in "abs int float complex index round neg pos".split():
        setattr(Instance, f"__{op}__", _forward_named(op))
    setattr(Instance, "__invert__", _forward_named("inv"))  # noqa: B010  mypy knows no such attribute
    for op in "lt le gt ge".split():
        setattr(Instance, f"__{op}__", _forward_operator(op, False))
    for op in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split():
        name = op + "_" if op in ("and", "or") else op
        setattr(Instance, f"__{op}__", _forward_operator(name, False))
        setattr(Instance, f"__r{op}__", _forward_operator(name, True))


_install()
