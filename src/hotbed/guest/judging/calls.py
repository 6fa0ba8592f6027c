"""Calls between two peers over a stream socket: what a judge and a candidate speak.

A message is a 32-bit big-endian length and that many bytes: lines of JSON text, split at newlines (JSON text holds
none).

    [id,"q",op,target]      a question; next line its arguments, then, if any, its keyword arguments
    [id,"k"]                an answer; next line its value, then, if they changed, the arguments as they are now
    [id,"e",names,origin]   a failure: class names along the MRO, and whose exception it was; next line its arguments,
                            then, if it has any, its attributes

Either side may ask while it is being asked (a test passes a callback), so waiting for an answer means serving
questions. An answer counts only for the question whose id it carries. `{"a": n}` as a value is "argument n, the same
object".

The two sides differ in what they perform, lend and borrow, and in how patient they are: see `candidate` and `proxies`.
"""

from __future__ import annotations

import collections
import functools
import socket
import struct
import threading
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple, Type

from . import failures, merging, plain

MESSAGE_LIMIT = 16 << 20
NESTING_LIMIT = 40

_LENGTH = struct.Struct("!I")
_TIMEVAL = struct.Struct("ll")
_SHAPES = {"q": 4, "k": 2, "e": 4}
_MUTABLE = frozenset((list, dict, set, bytearray, collections.deque))
_IMMUTABLE = frozenset((int, str, float, bool, type(None), tuple, bytes))


class Gone(EOFError):
    """The other end closed, or was killed."""


class Broken(ValueError):
    """The other end sent what is not a message of this protocol, or one over its limit."""


def _never(received: int) -> None:
    """The patience of a side that waits for ever."""


class Channel:
    """Whole messages over a stream socket.

    With `tick_s`, waiting wakes up that often and after each piece, and calls `wait(bytes so far)`, which may raise: a
    peer that drips one byte at a time gains nothing.
    """

    def __init__(self, sock: socket.socket, *, limit: int = MESSAGE_LIMIT, tick_s: Optional[float] = None) -> None:
        self.sock = sock
        self._limit = limit
        self._rest = b""
        self.wait: Callable[[int], None] = _never
        if tick_s is not None:
            span = _TIMEVAL.pack(int(tick_s), int(tick_s % 1 * 1e6))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)

    def send(self, message: bytes) -> None:
        """Send one message."""
        if len(message) > self._limit:
            raise plain.TooBig(f"a message of {len(message)} bytes")
        view = memoryview(_LENGTH.pack(len(message)) + message)
        while view:
            try:
                view = view[self.sock.send(view) :]
            except BlockingIOError:
                self.wait(0)
            except OSError as error:
                raise Gone(str(error)) from None

    def receive(self) -> bytes:
        """Wait for one message."""
        data = self._rest or self._more(0)
        while len(data) < 4:
            data += self._more(len(data))
        size = _LENGTH.unpack_from(data)[0] + 4
        if size - 4 > self._limit:
            raise Broken(f"a message of {size - 4} bytes, over the limit of {self._limit}")
        if len(data) < size:
            data = self._rest_of(data, size)
        self._rest = data[size:]
        return data[4:size]

    def unread(self) -> bool:
        """Whether something came after the last message: an answer to a question that was not yet asked."""
        return bool(self._rest)

    def _rest_of(self, data: bytes, size: int) -> bytes:
        pieces = bytearray(data)
        while len(pieces) < size:
            pieces += self._more(len(pieces), min(size - len(pieces), 1 << 20))
        return bytes(pieces)

    def _more(self, have: int, want: int = 1 << 16) -> bytes:
        while True:
            try:
                data = self.sock.recv(want)
            except BlockingIOError:
                self.wait(have)
                continue
            except OSError as error:
                raise Gone(str(error)) from None
            if not data:
                raise Gone("the other end closed")
            if have:
                self.wait(have)
            return data


Message = Tuple[List[Any], List[bytes]]


class Peer:
    """One side of a channel. Subclasses say what can be asked of them and what becomes of references."""

    #: Which exceptions of a performed question are answers. A judge keeps the ones that end its own work.
    answerable: Tuple[Type[BaseException], ...] = (Exception,)

    def __init__(self, channel: Channel, first: int, step: int) -> None:
        self.channel = channel
        self.lock = threading.RLock()
        self._id = first
        self._step = step
        self._nesting = 0

    def lend(self, value: Any) -> Any:
        """The tag of something that is not plain data."""
        return plain.refuse_to_lend(value)

    def borrow(self, tag: str, value: Any) -> Any:
        """What a tag of the other side stands for here."""
        return plain.refuse_to_borrow(tag, value)

    def perform(self, op: str, target: Any, args: List[Any], kwargs: Dict[str, Any]) -> Any:
        """Answer a question."""
        raise plain.BadData("nothing can be asked here")

    def origin(self, error: BaseException) -> Optional[int]:
        """The number of an exception that the other side once sent, or gave."""
        return None

    def failed(
        self, op: str, names: List[str], origin: Any, args: List[Any], attributes: Optional[Dict[str, Any]] = None
    ) -> NoReturn:
        """Raise what a failure of the other side stands for."""
        raise Broken("a failure")

    def ask(self, op: str, target: Any, args: Sequence[Any], kwargs: Optional[Dict[str, Any]] = None) -> Any:
        """Ask the other side, and wait for its answer."""
        with self.lock:
            number = self._id
            self._id += self._step
            message = b"[%d,%b]\n%b" % (number, _question(op, target), plain.encode(list(args), self.lend))
            if kwargs:
                message += b"\n" + plain.encode(kwargs, self.lend)
            self.channel.send(message)
            return self._answer_to(number, op, [*args, *kwargs.values()] if kwargs else args)

    def _answer_to(self, number: int, op: str, args: Sequence[Any]) -> Any:
        while True:
            head, lines = self.read()
            if head[1] == "q":
                self._serve(head, lines)
            elif head[0] != number:
                raise Broken(f"an answer to question {head[0]}, not {number}")
            elif head[1] == "e":
                if len(lines) > 2:
                    merging.merge_arguments(args, plain.decode(lines[2], self.borrow))
                return self.failed(op, *_failure_parts(head, lines, self.borrow))
            else:
                return self._value(lines, args)

    def _value(self, lines: List[bytes], args: Sequence[Any]) -> Any:
        if len(lines) > 1:
            merging.merge_arguments(args, plain.decode(lines[1], self.borrow))
        if lines[0].startswith(b'{"a":'):
            index = plain.decode(lines[0], lambda tag, value: value if tag == "a" else None)
            if type(index) is not int or not 0 <= index < len(args):
                raise plain.BadData("no such argument")
            return args[index]
        return plain.decode(lines[0], self.borrow)

    def read(self) -> Message:
        """The next message, checked as far as its head goes."""
        lines = self.channel.receive().split(b"\n")
        try:
            head = plain.parse(lines[0])
        except plain.BadData:
            raise Broken("a message without a head") from None
        if type(head) is not list or len(head) < 2 or type(head[0]) is not int or not 2 <= len(lines) <= 4:
            raise Broken("not a message")
        if type(head[1]) is not str or _SHAPES.get(head[1]) != len(head):
            raise Broken("not a message")
        return head, lines[1:]

    def serve(self) -> None:
        """Answer questions until the other side is gone."""
        while True:
            head, lines = self.read()
            if head[1] != "q":
                raise Broken("an answer that nobody waits for")
            self._serve(head, lines)

    def _serve(self, head: List[Any], lines: List[bytes]) -> None:
        if self._nesting >= NESTING_LIMIT:
            raise Broken(f"questions nested deeper than {NESTING_LIMIT}")
        self._nesting += 1
        given: List[Any] = []
        before = lines[0]
        try:
            args = plain.decode(lines[0], self.borrow)
            kwargs = plain.decode(lines[1], self.borrow) if len(lines) > 1 else {}
            if type(args) is not list or type(kwargs) is not dict:
                raise plain.BadData("not arguments")
            given = [*args, *kwargs.values()] if kwargs else args
            before = self._after(given, b"") if kwargs else before
            value = self.perform(head[2], head[3], args, kwargs)
            message = self._answer(head[0], value, given, before)
        except self.answerable as error:
            message = self._failure(head[0], error, given, before)
        finally:
            self._nesting -= 1
        self.channel.send(message)

    def _answer(self, number: int, value: Any, args: List[Any], before: bytes) -> bytes:
        text = b""
        if type(value) not in _IMMUTABLE:
            for index, argument in enumerate(args):
                if argument is value:
                    text = b'{"a":%d}' % index
        message = b'[%d,"k"]\n%b' % (number, text or plain.encode(value, self.lend))
        after = self._after(args, before)
        return message + b"\n" + after if after else message

    def _after(self, given: List[Any], before: bytes) -> bytes:
        """What became of the arguments; nothing if they are what they were."""
        if not any(type(each) in _MUTABLE or type(each).__name__ == "ndarray" for each in given):
            return b""
        after = plain.encode(given, self.lend)
        return b"" if after == before else after

    def _failure(self, number: int, error: BaseException, given: Sequence[Any] = (), before: bytes = b"") -> bytes:
        head = plain.dumps([number, "e", failures.names_of(error), self.origin(error)])
        message = head + b"\n" + plain.encode(failures.plain_arguments(error))
        attributes = failures.plain_attributes(error)
        after = self._changed_until(given, before)
        if after:
            return message + b"\n" + (attributes or plain.encode({})) + b"\n" + after
        return message + b"\n" + attributes if attributes else message

    def _changed_until(self, given: Sequence[Any], before: bytes) -> bytes:
        """The same for a call that failed: what can no longer be told is left as it was."""
        try:
            return self._after(list(given), before)
        except (TypeError, ValueError, RecursionError):
            return b""


@functools.lru_cache(maxsize=1000)
def _question(op: str, target: Any) -> bytes:
    return b'"q",%b,%b' % (plain.dumps(op), plain.dumps(target))


def _failure_parts(
    head: List[Any], lines: List[bytes], borrow: plain.Borrow
) -> Tuple[List[str], Any, List[Any], Dict[str, Any]]:
    names, args = head[2], plain.decode(lines[0], borrow)
    attributes = plain.decode(lines[1]) if len(lines) > 1 else {}
    if type(names) is not list or not names or any(type(name) is not str for name in names) or type(args) is not list:
        raise Broken("not a failure")
    if type(attributes) is not dict or any(type(name) is not str for name in attributes):
        raise Broken("not a failure")
    return names, head[3], args, attributes
