"""One call from its first byte to its answer, as steps that a driver performs. No I/O happens here.

`exchange` is a generator. It yields a `Step` and is sent what the step gave; a network step that fails has its OSError
thrown in. The sync driver (`transport.py`) and the asyncio driver (`async_transport.py`) are loops over the same steps,
so the two faces cannot differ in what they retry, in what they report, or in how they read an answer.

What may be sent again is decided here, and only where the node cannot have acted:

* no connection came about, or the node took no complete request: revive a local node, else try again for a while;
* a kept connection turned out to be dead before it took the request: once more, on a fresh one;
* the node refused before any side effect (`AtCapacity`, `Draining`): wait as long as it says, within `patience_s`;
* the node does not hold the lease that the call named: with another lease;
* a GET or DELETE whose connection ended without a byte of answer: as if it had not been sent;
* a call to a remote node that carries an idempotency key: the node does it once.

Anything else ends as `NodeUnavailable` or `DeadlineExceeded`, whose message says whether the request may have run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, TypeVar

from hotbed.errors import DeadlineExceeded, Error, LeaseGone, NodeUnavailable, NotFound, ProtocolError, SandboxGone
from hotbed.sdk.calls import Call
from hotbed.sdk.http import ResponseReader, chunk, request_head
from hotbed.sdk.retries import pause_before_redial, pause_before_retry
from hotbed.sdk.steps import Finish, Open, Opened, Pause, Pull, Push, Read, Revive, Steps, Write
from hotbed.wire.routes import KEY_HEADER

T = TypeVar("T")

_STREAM = 256 << 10
_ANSWER = 64 << 10  # what an allocator gives out of what it has: a larger buffer is mapped and unmapped for each answer
_DIAL_S = 10.0
_LEASES = 2  # how often a call takes another lease: the node may be draining, with its successor there already
_UNPREPARED = "see `hotbed doctor` and the node's log; start one with `hotbed node`"


class _Unsent(Exception):
    """The node has not taken the request."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Clock:
    """How much of a call's time is left."""

    def __init__(self, call: Call[Any], now: Callable[[], float]) -> None:
        self._now = now
        self._started = now()
        self._limit = call.timeout_s
        self._streams = call.streams

    def elapsed(self) -> float:
        return self._now() - self._started

    def left(self) -> float:
        """Seconds for the next step: of the whole for an ordinary call, anew each time for a streaming one."""
        left = self._limit if self._streams else self._limit - self.elapsed()
        if left <= 0:
            raise TimeoutError
        return left


def exchange(call: Call[T], *, now: Callable[[], float] = monotonic) -> Steps[T]:
    """Make the call, again where that is safe."""
    attempt = 0
    clock = _Clock(call, now)
    key = os.urandom(12).hex() if call.keyed else ""
    while True:
        try:
            return (yield from _attempt(call, clock, key))
        except _Unsent as unsent:
            pause = yield from _redial(attempt, clock.elapsed(), unsent.reason)
        except Error as failure:
            pause = yield from _after_refusal(failure, call, attempt, clock)
        except TimeoutError:
            raise DeadlineExceeded(
                f"no answer to {_name(call)} within {call.timeout_s:g} s; it may have run",
                hint="the node is overloaded or stuck: see `hotbed ps`, or allow more time",
            ) from None
        if pause:
            yield Pause(pause)
        attempt += 1


def _after_refusal(failure: Error, call: Call[Any], attempt: int, clock: _Clock) -> Steps[float]:
    """What to do about an answer that is an error: how long to wait before the next try, or the error itself."""
    if call.upload is None:
        if isinstance(failure, LeaseGone) and attempt < _LEASES:
            yield Revive()
            return 0.0
        pause = pause_before_retry(failure, attempt, clock.elapsed(), call.patience_s)
        if pause is not None:
            return pause
    raise failure


def _redial(attempt: int, elapsed: float, reason: OSError) -> Steps[float]:
    """What to do about a node that cannot be reached: how long to wait before the next try."""
    if attempt == 0 and (yield Revive()):
        return 0.0
    pause = pause_before_redial(attempt, elapsed)
    if pause is None:
        raise NodeUnavailable(f"no node answers: {reason}", hint=_UNPREPARED) from reason
    return pause


def _attempt(call: Call[T], clock: _Clock, key: str) -> Steps[T]:
    """One try; a second connection only where the first, a kept one, had died before."""
    for fresh in (False, True):
        patience = min(clock.left(), _DIAL_S)
        try:
            opened: Opened = yield Open(fresh=fresh, leased=call.leased, timeout_s=patience)
        except OSError as reason:
            raise _Unsent(reason) from reason
        reader = ResponseReader()
        stale = opened.reused and not fresh
        keyed = _with_key(opened, key)
        if not (yield from _send(call, opened, reader, clock, stale=stale)):
            continue
        try:
            return (yield from _receive(call, reader, clock))
        except TimeoutError:
            raise
        except OSError as reason:
            if keyed or (call.idempotent and not reader.touched):
                yield Finish(reusable=False)
                if stale:
                    continue
                raise _Unsent(reason) from reason  # asked again of the next node: doing it twice is doing it once
            raise _lost(call, reason) from reason
    raise AssertionError("a fresh connection is never stale")


def _with_key(opened: Opened, key: str) -> bool:
    """Let the node know that it is to be done once; whether it will. A local node's end is the end of all it did."""
    if not key or not opened.remote:
        return False
    opened.headers += f"{KEY_HEADER}: {key}\r\n".encode("ascii")
    return True


def _send(call: Call[Any], opened: Opened, reader: ResponseReader, clock: _Clock, *, stale: bool) -> Steps[bool]:
    """Write the request. False when the connection was dead and a fresh one should be tried."""
    length = call.upload_length if call.upload is not None else len(call.body)
    head = request_head(call.method, opened.prefix + call.target, opened.headers, length)
    try:
        yield Write(head + call.body, clock.left())
        if call.upload is not None:
            yield from _upload(call.upload, length, clock)
    except TimeoutError:
        raise
    except OSError as reason:
        # A node that refuses a body answers before it has read all of it.
        yield from _early_answer(reader, clock)
        if reader.touched:
            return True
        yield Finish(reusable=False)
        if call.upload is not None:
            raise _lost(call, reason) from reason
        if not stale:
            raise _Unsent(reason) from reason
        return False
    return True


def _upload(source: Iterator[bytes], length: int | None, clock: _Clock) -> Steps[None]:
    while (data := (yield Pull(source))) is not None:
        if data:
            yield Write(data if length is not None else chunk(data), clock.left())
    if length is None:
        yield Write(chunk(b""), clock.left())


def _early_answer(reader: ResponseReader, clock: _Clock) -> Steps[None]:
    try:
        reader.feed((yield Read(_ANSWER, clock.left())))
    except OSError:
        return


def _receive(call: Call[T], reader: ResponseReader, clock: _Clock) -> Steps[T]:
    size = _ANSWER if call.sink is None else _STREAM
    while not reader.complete:
        reader.feed((yield Read(size, clock.left())))
        if call.sink is not None and 200 <= reader.status < 300:
            piece = reader.take()
            if piece:
                yield Push(call.sink, piece)
    yield Finish(reusable=reader.reusable)
    body = reader.take()
    if not 200 <= reader.status < 300:
        raise error_from(reader, body, sandbox_id=call.sandbox_id)
    return call.read(body)


def error_from(reader: ResponseReader, body: bytes, *, sandbox_id: str | None = None) -> Error:
    """The exception that an error answer stands for."""
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    code = data.get("code") or data.get("error_code") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(code, str):
        return ProtocolError(
            f"HTTP {reader.status} without an error of ours: {body[:80]!r}", hint="is the URL that of a Hotbed node?"
        )
    message = str(data.get("message") or code)
    hint = data.get("hint")
    error = Error.from_wire(
        code,
        message,
        hint=hint if isinstance(hint, str) else None,
        retry_after_s=_seconds(reader.headers.get("retry-after")),
    )
    if sandbox_id is not None and type(error) is NotFound:
        return SandboxGone(
            f"sandbox {sandbox_id} is gone: {message}", hint=error.hint or "make a new one, or reset() this"
        )
    return error


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # the date form; our node sends seconds


def _lost(call: Call[Any], reason: OSError) -> NodeUnavailable:
    return NodeUnavailable(
        f"the node went away during {_name(call)} ({str(reason) or type(reason).__name__}); it may have run",
        hint="its sandboxes are gone; ask again if running twice is harmless. " + _UNPREPARED,
    )


def _name(call: Call[Any]) -> str:
    return f"{call.method} {call.target.partition('?')[0]}"
