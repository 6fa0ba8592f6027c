"""How what runs in one sandbox is pinned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hotbed.errors import NotSupported, SandboxFailed
from hotbed.runtime.base import Ahead, ExecRequest
from hotbed.runtime.boxpins import BoxPins

SEED = bytes(32)
CODE = ExecRequest(kind="code", program=b"pass", seed=SEED, determinism="rng")
COMMAND = ExecRequest(kind="command", program=b"true", stdin=b"x", seed=SEED, determinism="rng")


class FakePin:
    """Remembers what became of it."""

    def __init__(self, request: object) -> None:
        self.request = request
        self.said: list[str] = []

    async def put_on(self) -> None:
        """It is."""
        self.said.append("on")

    def seed(self, request: object) -> None:
        """What it is pinned by."""
        self.said.append("seed")

    def drop(self) -> None:
        """Nobody wants it."""
        self.said.append("drop")


class FakePinner:
    """Begins fake pins."""

    def __init__(self) -> None:
        self.begun: list[FakePin] = []
        self.fail: Callable[[str], None] = pytest.fail

    async def begin(self, request: object, on_failure: Callable[[str], None]) -> Any:
        """One more."""
        self.fail = on_failure
        self.begun.append(FakePin(request))
        return self.begun[-1]


async def asked(_header: object, **_: object) -> Any:
    """An agent that does what it is told."""
    return {}, b"", []


def of_exec(request: ExecRequest, kind: Ahead = "code") -> tuple[Any, FakePin, list[FakePin]]:
    """Which pin an exec gets in a sandbox with one of that kind put on ahead; that one; all."""

    async def act() -> tuple[Any, FakePin, list[FakePin]]:
        pinner = FakePinner()
        pins = BoxPins(pinner, pytest.fail)  # type: ignore[arg-type]  # fakes
        await pins.begin_ahead(kind, asked)
        found = await pins.of_exec(request, SEED)
        pins.drop()
        return found, pinner.begun[0], pinner.begun

    return asyncio.run(act())


@pytest.mark.parametrize(
    ("request_", "kind"),
    [(CODE, "code"), (COMMAND, "command"), (replace(COMMAND, kind="commands", argv=(("true",),)), "command")],
    ids=["code", "a command", "commands, but one"],
)
def test_what_it_is_for_gets_what_waits_with_its_seed(request_: ExecRequest, kind: Ahead) -> None:
    """And nobody begins another."""
    found, ahead, begun = of_exec(request_, kind)

    assert found is ahead and ahead.said == ["on", "seed"] and begun == [ahead]


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (COMMAND, "code"),
        (CODE, "command"),
        (replace(CODE, determinism="full"), "code"),
        (replace(COMMAND, determinism="full"), "command"),
        (replace(COMMAND, kind="commands", argv=(("true",), ("true",))), "command"),
        (replace(CODE, stdin=b"x"), "code"),
        (replace(CODE, program=b"#" * (40 << 10)), "code"),
        (replace(CODE, args=("x" * (40 << 10),)), "code"),
    ],
    ids=[
        "a command",
        "code",
        "code, level full",
        "a command, level full",
        "two commands",
        "with input",
        "a long program",
        "long arguments",
    ],
)
def test_what_it_is_not_for_gets_another(request_: ExecRequest, kind: Ahead) -> None:
    """The one that waits is let go: it cannot be taken off."""
    found, ahead, begun = of_exec(request_, kind)

    assert ahead.said == ["on", "drop"] and begun == [ahead, found]


def test_a_sandbox_that_ends_lets_go_of_what_waits() -> None:
    """Its process has ended too."""

    async def act() -> list[str]:
        pinner = FakePinner()
        pins = BoxPins(pinner, pytest.fail)  # type: ignore[arg-type]  # fakes
        await pins.begin_ahead("code", asked)
        pins.drop()
        pins.drop()
        return pinner.begun[0].said

    assert asyncio.run(act()) == ["on", "drop"]


def test_where_nothing_could_be_pinned_ahead_nothing_is_left() -> None:
    """The supervisor is told that nobody wants it."""

    async def act() -> list[str]:
        async def refused(_header: object, **_: object) -> Any:
            raise NotSupported("there is nothing that could wait")

        pinner = FakePinner()
        with pytest.raises(NotSupported):
            await BoxPins(pinner, pytest.fail).begin_ahead("code", refused)  # type: ignore[arg-type]  # fakes
        return pinner.begun[0].said

    assert asyncio.run(act()) == ["drop"]


def test_a_pin_that_does_not_hold_ends_the_sandbox() -> None:
    """With the reason; and without a supervisor nothing is pinned."""
    told: list[SandboxFailed] = []

    async def act() -> None:
        pinner = FakePinner()
        await BoxPins(pinner, told.append).begin(None)  # type: ignore[arg-type]  # fakes
        pinner.fail("it is gone")
        with pytest.raises(SandboxFailed, match="without a way"):
            await BoxPins(None, told.append).begin(None)

    asyncio.run(act())

    assert [str(error.message) for error in told] == ["what ran was not kept pinned: it is gone"]
