"""What is asked under a key is done once."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, KeyReused, SandboxFailed
from hotbed.node import once
from hotbed.node.nursery import Nursery
from hotbed.node.once import Once, check_key


class Clock:
    """Time that a test tells."""

    now = 0.0

    def __call__(self) -> float:
        """What it is."""
        return self.now


class Work:
    """Counts how often it is done, and ends when it is told."""

    def __init__(self, *outcomes: Any) -> None:
        self.done = 0
        self.go = asyncio.Event()
        self.go.set()
        self._outcomes = list(outcomes)

    async def __call__(self) -> bytes:
        """Do it."""
        self.done += 1
        await self.go.wait()
        outcome = self._outcomes.pop(0) if self._outcomes else b"answer"
        if isinstance(outcome, Exception):
            raise outcome
        return bytes(outcome)


def trying(test: Callable[[Once[bytes], Clock], Awaitable[None]]) -> None:
    """Run a test with a registry and its clock."""

    async def run() -> None:
        clock, nursery = Clock(), Nursery()
        await test(Once(nursery, len, clock=clock), clock)
        assert await nursery.wait_empty(timeout_s=5)

    asyncio.run(run())


@pytest.mark.parametrize("here", [False, True])
def test_the_same_again_has_the_same_answer_and_no_second_effect(here: bool) -> None:
    """Later, and while the first is still running."""

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        work = Work(b"one")
        work.go.clear()
        asked = [asyncio.ensure_future(keyed.do("t", "k", b"body", work, here=here)) for _ in range(3)]
        await asyncio.sleep(0.01)
        work.go.set()

        assert await asyncio.gather(*asked) == [b"one"] * 3
        assert await keyed.do("t", "k", b"body", work, here=here) == b"one"
        assert work.done == 1

    trying(test)


def test_another_request_under_the_key_is_refused() -> None:
    """And the first one's answer stays."""

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        await keyed.do("t", "lease k", b"one", Work(b"1"))
        other = Work()
        with pytest.raises(KeyReused, match="the idempotency key 'k' came"):  # as the client knows it
            await keyed.do("t", "lease k", b"two", other)

        assert other.done == 0
        assert await keyed.do("t", "lease k", b"one", other) == b"1"

    trying(test)


def test_tenants_have_keys_of_their_own() -> None:
    """Nobody can find out by a key what another asked."""

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        assert await keyed.do("a", "k", b"one", Work(b"1")) == b"1"
        assert await keyed.do("b", "k", b"two", Work(b"2")) == b"2"

    trying(test)


def test_the_work_goes_on_when_who_asked_is_gone() -> None:
    """Asking again is what the key is for."""

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        work = Work(b"kept")
        work.go.clear()
        gone = asyncio.ensure_future(keyed.do("t", "k", b"x", work))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        work.go.set()

        assert await keyed.do("t", "k", b"x", work) == b"kept"
        assert work.done == 1

    trying(test)


@pytest.mark.parametrize("here", [False, True])
def test_what_was_refused_with_nothing_done_is_tried_again(here: bool) -> None:
    """What may have been done is not."""

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        refused = Work(AtCapacity("full"), b"then")
        with pytest.raises(AtCapacity):
            await keyed.do("t", "k", b"x", refused, here=here)
        assert await keyed.do("t", "k", b"x", refused, here=here) == b"then"
        failed = Work(SandboxFailed("half way"))
        for _ in range(2):
            with pytest.raises(SandboxFailed):
                await keyed.do("t", "f", b"x", failed, here=here)

        assert (refused.done, failed.done) == (2, 1)

    trying(test)


@pytest.mark.parametrize("here", [False, True])
def test_memory_is_bounded_by_time_by_number_and_by_bytes(here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Oldest first."""
    monkeypatch.setattr(once, "ENTRIES", 3)
    monkeypatch.setattr(once, "BYTES", 100)

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        for number in range(5):
            await keyed.do("t", str(number), b"x", Work(b"1"), here=here)
        again = Work()
        await keyed.do("t", "4", b"x", again, here=here)
        assert again.done == 0
        await keyed.do("t", "0", b"x", again, here=here)
        assert again.done == 1
        await keyed.do("t", "big", b"x", Work(bytes(101)))
        await keyed.do("t", "big", b"x", again, here=here)
        assert again.done == 2
        clock.now += once.KEPT_S + 1
        await keyed.do("t", "big", b"x", again, here=here)
        assert again.done == 3

    trying(test)


class Thing:
    """What can be seen to be forgotten."""


@pytest.mark.parametrize("here", [False, True])
def test_a_failure_that_is_kept_holds_nothing_of_its_requests(here: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A traceback has the frames, and those the body: up to 64 MiB for each key, and no bound counts them."""
    caplog.set_level(logging.CRITICAL, "hotbed.node.nursery")  # pytest would keep the error that it logs

    async def test(keyed: Once[bytes], clock: Clock) -> None:
        bodies = []

        async def fail() -> bytes:
            body = Thing()
            bodies.append(weakref.ref(body))
            raise SandboxFailed("half way", hint="so it is")

        async def ask() -> None:
            body = Thing()
            bodies.append(weakref.ref(body))
            with pytest.raises(SandboxFailed, match=r"half way \(hint: so it is\)"):
                await keyed.do("t", "k", b"x", fail, here=here)

        for _ in range(2):
            await ask()
            await asyncio.sleep(0)
        gc.collect()

        assert [body() for body in bodies] == [None] * 3

    trying(test)


def test_who_never_asks_again_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that was answered."""
    monkeypatch.setattr(once, "KEPT_S", 0.01)

    async def run() -> None:
        keyed: Once[Thing] = Once(Nursery(), lambda _: 1)

        async def work() -> Thing:
            return Thing()

        answer = weakref.ref(await keyed.do("t", "k", b"x", work))
        deadline = asyncio.get_running_loop().time() + 10
        while answer() is not None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
            gc.collect()

        assert answer() is None

    asyncio.run(run())


@pytest.mark.parametrize("key", ["", "x" * 256, "ä", "a\tb"])
def test_what_is_no_key_is_refused(key: str) -> None:
    """It must fit into a header, and into memory."""
    with pytest.raises(InvalidRequest, match="key"):
        check_key(key)
