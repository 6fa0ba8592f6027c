"""Idempotency keys: the same request under the same key is done once, and answered as often as it is asked.

A key belongs to one tenant and one request. Whoever asks again while the first is still running waits for the same
answer; who asks later is given what was answered; who asks for something else is refused. The work under a key goes on
when its client hangs up, since asking again is what the key is for.

What was refused with nothing done, and may be sent again, is not kept: asking again tries again. Answers are kept for
`KEPT_S`, and for each tenant at most `ENTRIES` of them and `BYTES` in all, oldest first.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hotbed.errors import Error, InvalidRequest, KeyReused
from hotbed.node.nursery import Nursery

T = TypeVar("T")

KEY_LIMIT = 255
KEPT_S = 3600.0
ENTRIES = 1000
BYTES = 32 << 20


@dataclass(slots=True, eq=False)
class _Asked(Generic[T]):
    fingerprint: bytes
    task: asyncio.Future[T] | None  # None once it has failed: it would hold whatever its frames held
    begun_s: float
    failure: Error | None = None
    size: int = 0
    answered: bool = False


@dataclass(slots=True, eq=False)
class _Tenant(Generic[T]):
    asked: OrderedDict[str, _Asked[T]] = field(default_factory=OrderedDict)
    size: int = 0


class Once(Generic[T]):
    """What was asked under a key. `size_of` says what keeping an answer costs."""

    def __init__(self, nursery: Nursery, size_of: Callable[[T], int], *, clock: Callable[[], float] = time.monotonic):
        self._nursery = nursery
        self._size_of = size_of
        self._clock = clock
        self._tenants: dict[str, _Tenant[T]] = {}

    async def do(
        self, tenant: str, key: str, asked: bytes, work: Callable[[], Coroutine[Any, Any, T]], *, here: bool = False
    ) -> T:
        """The answer, of work that is done for it now or was before. Raises `KeyReused`, and what the work raises.

        The client's key comes after what it is under, and a blank. The work is a task of its own, which goes on when
        whoever asked is cancelled; `here` if that does not happen to who asks.
        """
        of = self._tenants.get(tenant)
        if of is None:
            of = self._tenants[tenant] = _Tenant()
            asyncio.get_running_loop().call_later(KEPT_S, self._look_after, tenant)
        self._forget_old(of)
        fingerprint = hashlib.sha256(asked).digest()
        known = of.asked.get(key)
        if known is None and here:
            return await self._do_here(of, key, fingerprint, work)
        if known is None:
            known = self._begin(of, key, fingerprint, work)
        elif known.fingerprint != fingerprint:
            raise KeyReused(
                f"the idempotency key {key.split(' ', 1)[-1][:64]!r} came with another request before",
                hint="a key is for one request and its repetitions: take a new one for a new request",
            )
        if known.failure is not None:
            raise copy.copy(known.failure)  # each who asks has a traceback of its own
        assert known.task is not None, "what has not failed runs or is done"
        return await asyncio.shield(known.task)

    async def _do_here(
        self, of: _Tenant[T], key: str, fingerprint: bytes, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        asked = of.asked[key] = _Asked(fingerprint, done, self._clock())
        try:
            answer = await work()
            done.set_result(answer)
            return answer
        except Exception as failure:  # whoever else asked is told the same
            done.set_exception(failure)
            raise
        except BaseException:
            done.cancel()
            raise
        finally:
            self._answered(of, key, asked, done)
            del asked, done  # a failure holds this frame

    def _begin(
        self, of: _Tenant[T], key: str, fingerprint: bytes, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> _Asked[T]:
        task = self._nursery.start(work(), name="keyed")
        asked = of.asked[key] = _Asked(fingerprint, task, self._clock())
        task.add_done_callback(lambda done: self._answered(of, key, asked, done))
        return asked

    def _answered(self, of: _Tenant[T], key: str, asked: _Asked[T], done: asyncio.Future[T]) -> None:
        """Keep what was done; forget what was not."""
        asked.answered = True
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        if failure is not None and (not isinstance(failure, Error) or failure.retryable):
            if of.asked.get(key) is asked:
                del of.asked[key]
            return
        if failure is None:
            asked.size = self._size_of(done.result())
            of.size += asked.size
        else:
            asked.task, asked.failure = None, copy.copy(failure)
        self._forget_old(of)

    def _look_after(self, tenant: str) -> None:
        """Forget what is old of a tenant that may never ask again."""
        of = self._tenants[tenant]
        self._forget_old(of)
        if of.asked:
            asyncio.get_running_loop().call_later(KEPT_S, self._look_after, tenant)
        else:
            del self._tenants[tenant]

    def _forget_old(self, of: _Tenant[T]) -> None:
        """Forget from the oldest on, as far as need be: what is kept is not walked for every request."""
        before, old = self._clock() - KEPT_S, []
        left, size = len(of.asked), of.size
        for key, asked in of.asked.items():
            if asked.begun_s >= before and left <= ENTRIES and size <= BYTES:
                break
            if asked.answered:  # what runs is held by whoever waits for it
                left, size = left - 1, size - asked.size
                old.append(key)
        for key in old:
            del of.asked[key]
        of.size = size


def check_key(key: str) -> None:
    """Refuse what is no key."""
    if not 0 < len(key) <= KEY_LIMIT or not key.isascii() or not key.isprintable():
        raise InvalidRequest(f"an idempotency key is 1 to {KEY_LIMIT} printable ASCII characters")
