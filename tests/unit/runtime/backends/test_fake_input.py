"""The fake's execs can be fed, signalled and killed while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hotbed.errors import NotSupported
from hotbed.runtime.backends.fake_box import FakeBox
from hotbed.runtime.base import ExecOutcome, ExecRequest, Limits
from hotbed.runtime.running import Running


def talk(directory: Path, program: bytes, act: Callable[[Running], Awaitable[None]]) -> ExecOutcome:
    """Run a program and do something to it once it runs."""

    async def run() -> ExecOutcome:
        box = FakeBox(1, str(directory / "box"), limits=Limits(), env={}, on_gone=lambda _: None)
        started: list[Running] = []
        request = ExecRequest(kind="command", program=program, stdin_open=True, timeout_s=10.0)
        running = asyncio.ensure_future(box.exec(request, None, started.append))
        while not started:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        await act(started[0])
        outcome = await running
        await act(started[0])  # it has ended, and nothing happens
        await box.kill()
        return outcome

    return asyncio.run(run())


def test_what_is_fed_is_read_until_its_end(tmp_path: Path) -> None:
    """In order."""

    async def act(running: Running) -> None:
        await running.feed(b"one ")
        await running.feed(b"two")
        running.end_input()

    assert talk(tmp_path, b"cat", act).stdout == b"one two"


def test_a_signal_reaches_it(tmp_path: Path) -> None:
    """Its whole group."""

    async def act(running: Running) -> None:
        running.signal(15)
        running.resize(1, 1)

    assert talk(tmp_path, b"trap 'exit 3' TERM; sleep 10 & wait", act).exit_code == 3


def test_killing_ends_it(tmp_path: Path) -> None:
    """At once."""

    async def act(running: Running) -> None:
        running.kill()

    assert talk(tmp_path, b"sleep 10", act).signal == 9


def test_it_has_no_terminals(tmp_path: Path) -> None:
    """And says so."""

    async def run() -> None:
        box = FakeBox(1, str(tmp_path / "box"), limits=Limits(), env={}, on_gone=lambda _: None)
        with pytest.raises(NotSupported, match="terminals"):
            await box.exec(ExecRequest(kind="command", program=b"true", terminal=(24, 80)))
        await box.kill()

    asyncio.run(run())
