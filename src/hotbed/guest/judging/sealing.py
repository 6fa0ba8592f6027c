"""The judge's end of the calls: asks one candidate, counts, keeps time, and believes nothing.

What ends a candidate (its socket closed, a message that is not one, time run out) raises `Over`, which is no
`Exception`: it passes through the tests' own `except Exception` and ends the run. What the candidate merely raised is
an ordinary exception of the tests' world. All that a candidate may do to the judge is answer, and call back the
functions that a test handed it: functions can be called, iterators advanced, other objects offer their public
attributes, as far as `offered` goes. Nothing else of the judge can be named.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NoReturn, Optional, Set, Tuple, Type

from . import callbacks, calls, failures, offered, plain, proxies
from .proxy_functions import AsyncItems, Function, Generator, Items

SLOW_S = 0.02
TICK_S = 0.05
LOAD_WALL_S = 10.0
CALL_LIMIT = 1_000_000


class Over(BaseException):
    """This candidate's process is finished; `status` says how it looks from here."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Patience:
    """How long an answer may take. Wall time is the backstop: the CPU limit is kept in the candidate's own process.

    At the limit `waited()` is asked how long the candidate was runnable without a CPU; that much is added, up to four
    times the limit in all, so that a loaded machine does not turn honest programs into timeouts. `slow()` is called
    once when an answer takes longer than a moment.
    """

    def __init__(
        self, wall_s: float, waited: Callable[[], float] = lambda: 0.0, slow: Callable[[], None] = lambda: None
    ) -> None:
        self._wall_s = wall_s
        self._waited = waited
        self._slow = slow
        self._started = 0.0
        self._deadline = 0.0
        self._told = False

    def begin(self, extra_s: float = 0.0) -> None:
        """A call starts."""
        self._started = time.monotonic()
        self._deadline = self._started + self._wall_s + extra_s

    def wait(self, received: int) -> None:
        """Called while an answer is not there yet."""
        now = time.monotonic()
        if not self._told and now - self._started > SLOW_S:
            self._told = True
            self._slow()
        if now < self._deadline:
            return
        spare = min(self._waited(), self._started + 4 * self._wall_s - self._deadline)
        if spare < 0.05:
            raise Over("timeout", "no answer within %.3g s" % (now - self._started))
        self._deadline += spare


class JudgePeer(calls.Peer):
    """One candidate process, as the tests' stubs see it."""

    def __init__(self, channel: calls.Channel, patience: Patience, *, live_operators: bool = False) -> None:
        super().__init__(channel, first=1, step=1)
        self.live_operators = live_operators
        self.calls = 0
        self.tampered = ""
        self.reasons: List[str] = []
        self.over: Optional[Over] = None
        self.asked: Callable[[], None] = lambda: None  # told when the first question is asked
        self.errors: Dict[str, Type[BaseException]] = {}
        self._patience = patience
        self._depth = 0
        self._lent: List[Any] = []
        self._numbers: Dict[int, int] = {}
        self._stubs: Dict[int, Any] = {}
        self._named: Set[int] = set()
        self._surroundings = callbacks.Surroundings()
        self._offered = offered.Offered()
        self._just_told: Set[int] = set()  # exceptions that the candidate was told of while its present call lasts
        channel.wait = patience.wait

    def question(self, op: str, target: Any, args: Tuple[Any, ...], kwargs: Optional[Dict[str, Any]] = None) -> Any:
        """Ask the candidate: every stub ends here."""
        if self.over is not None:
            raise self.over
        with self.lock:
            self.calls += 1
            if self._depth == 0:
                self._before()
            self._depth += 1
            try:
                if self._depth == 1 and self._surroundings.changed():
                    self.ask("surround", None, [self._surroundings.replaced()])
                return self.ask(op, target, args, kwargs)
            except (calls.Gone, calls.Broken, plain.BadData, Over) as error:
                self._finish(error)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._just_told.clear()

    def _before(self) -> None:
        self._patience.begin()
        if self.calls == 1:
            self.asked()
        if self.channel.unread():
            self._finish(calls.Broken("an answer before its question"))
        if self.calls > CALL_LIMIT:
            self._finish(Over("timeout", f"more than {CALL_LIMIT} calls"))

    def _finish(self, error: BaseException) -> NoReturn:
        """Nothing more is asked of this process."""
        if isinstance(error, Over):
            self.over = self.over or error
        elif isinstance(error, calls.Gone):
            self.over = Over("exit", "the candidate's process ended")
        else:
            self.over = Over("candidate_error", f"the candidate sent what is no answer: {error}")
            if isinstance(error, calls.Broken):
                self.tampered = str(error)
        raise self.over from None

    def loaded(self) -> Dict[str, Any]:
        """Wait until the candidate has loaded; what each name asked for is. Raises what the candidate's code raised.

        Loading may take longer than a call: imports are part of it.
        """
        self._patience.begin(extra_s=LOAD_WALL_S)
        try:
            head, lines = self.read()
            if head[0] != 0 or head[1] == "q":
                raise calls.Broken("no answer about loading")
            if head[1] == "e":
                self.failed("load", head[2], None, plain.decode(lines[0]))
            found = plain.decode(lines[0])
            if type(found) is not dict:
                raise calls.Broken("no answer about loading")
            return found
        except (calls.Gone, calls.Broken, plain.BadData, Over, TypeError) as error:
            self._finish(error)

    def export(self, name: str) -> Any:
        """A name of the candidate that is a class or a value. Its class, if any, is from now on known by name."""
        value = self.question("export", name, ())
        found = proxies.live(value) if isinstance(value, type) else None
        if found is not None:
            self._named.add(found[1])
        elif isinstance(value, type):
            self.errors[name] = value
        return value

    def is_named(self, number: int) -> bool:
        return number in self._named

    def unseal(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def lend(self, value: Any) -> Any:
        found = proxies.live(value)
        if found is not None and found[0] is self:
            return {"y": found[1]} if found[1] is not None else self._by_name(value)
        number = self._numbers.get(id(value))
        if number is None:
            number = len(self._lent)
            self._lent.append(value)
            self._numbers[id(value)] = number
            if self._nesting == 0:  # else it is what a candidate made of something
                self._offered.lend(value)
        return {"h": [number, callbacks.kind(value)]}

    def _by_name(self, stub: Function) -> Any:
        """A stub handed back to the candidate becomes its own function there."""
        value = self.question("export", stub.__name__, ())
        found = proxies.live(value)
        return {"y": found[1]} if found and found[1] is not None else plain.refuse_to_lend(stub)

    def borrow(self, tag: str, value: Any) -> Any:
        if tag == "y" and type(value) is int and 0 <= value < len(self._lent):
            return self._lent[value]
        if tag == "h" and type(value) is list:
            return self._stub(value)
        raise plain.BadData("unknown tag")

    def _stub(self, description: List[Any], nesting: int = 0) -> Any:
        number, kind = description[0], description[1]
        if type(number) is not int or nesting > 30:
            raise plain.BadData("not a reference")
        found = self._stubs.get(number)
        if found is None:
            found = self._stubs[number] = self._new_stub(number, kind, description[2:], nesting)
        if kind == "w":
            return proxies.coroutine(self, found)
        return found

    def _new_stub(self, number: int, kind: Any, rest: List[Any], nesting: int) -> Any:
        if kind == "f" and type(rest[0]) is str:
            return Function(self, number, rest[0][:80])
        if kind in _ITEMS:
            return _ITEMS[kind](self, number)
        if kind == "o":
            base = self._stub(rest[0], nesting + 1)
            if isinstance(base, proxies.ClassStub):
                return proxies.instance_of(base, self, number)
            return proxies.instance_of(proxies.Instance, self, number)
        if kind == "c" and len(rest) == 3 and type(rest[0]) is str:
            return self._class(number, rest[0], rest[1], rest[2], nesting)
        raise plain.BadData("not a reference")

    def _class(self, number: int, name: str, bases: Any, errors: Any, nesting: int) -> Any:
        if errors:  # a class of exceptions is a real one here: tests raise, catch and compare it
            if any(type(each) is not str for each in errors):
                raise plain.BadData("not a class")
            return type(failures.rebuild("class", errors, [], self.errors))
        stubs = [self._stub(base, nesting + 1) for base in bases]
        return proxies.class_stub(name, [stub for stub in stubs if isinstance(stub, proxies.ClassStub)], self, number)

    def perform(self, op: str, target: Any, args: List[Any], kwargs: Dict[str, Any]) -> Any:
        """A callback: only on what was lent, only what its kind allows."""
        if type(target) is not int or not 0 <= target < len(self._lent) or self._depth == 0:
            raise calls.Broken("a question about nothing that was lent")
        self._patience.wait(0)  # one callback after another is no answer either
        return self._offered.use(self._lent[target], op, args, kwargs)

    def told(self, error: BaseException) -> Tuple[List[str], Optional[int], List[Any]]:
        """An exception of the tests, as a candidate is told of it."""
        return failures.names_of(error), self.origin(error), failures.plain_arguments(error)

    def origin(self, error: BaseException) -> Optional[int]:
        found = int(self.lend(error)["h"][0])
        self._just_told.add(found)
        return found

    def failed(
        self, op: str, names: List[str], origin: Any, args: List[Any], attributes: Optional[Dict[str, Any]] = None
    ) -> NoReturn:
        if type(origin) is int and origin in self._just_told and failures.may_be_raised(op, self._lent[origin]):
            raise self._lent[origin]
        raise failures.rebuild(op, names, args, self.errors, attributes)


_ITEMS = {"i": Items, "g": Generator, "a": AsyncItems, "w": Items}
