"""A template and what is parked of it. Its process is exercised by test_fork.py and tests/conformance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hotbed.errors import NotSupported, SandboxFailed
from hotbed.runtime.backends.fork_template import ForkTemplate
from hotbed.runtime.base import BoxRequest, Limits, TemplateSpec
from hotbed.runtime.lot import Lot

ANY: Any = SimpleNamespace()
SPEC = TemplateSpec(name="python", programs=())


@pytest.mark.parametrize(
    ("request_", "served"),
    [
        (BoxRequest(), True),
        (BoxRequest(use_spare=False), False),
        (BoxRequest(hostname="other"), False),
        (BoxRequest(limits=Limits(pids=7)), False),
        (BoxRequest(forkable=True), False),
        (BoxRequest(layer=ANY), False),
    ],
)
def test_a_spare_serves_what_it_is_like(request_: BoxRequest, served: bool) -> None:
    """What asks for anything else is forked for itself."""

    async def scenario() -> None:
        spare: Any = SimpleNamespace(request=None, warm_hit=False, fork_time_ms=0.0)
        settings = SimpleNamespace(spares=1, vessels=1, doored=1)
        backend: Any = SimpleNamespace(settings=settings, solos=True, lot=Lot())
        view: Any = None
        template = ForkTemplate(SPEC, backend, view, view)
        template.spares.take = lambda: spare  # type: ignore[method-assign]  # no process here

        found = await template._take_parked(request_, request_.limits or SPEC.limits)

        assert (found is spare, spare.warm_hit, template.served["warm"]) == (served, served, int(served))

    asyncio.run(scenario())


def test_what_nobody_used_for_an_hour_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless sandboxes of it live, or a snapshot could still start one."""

    async def scenario() -> None:
        killed: list[str] = []
        busy = ""
        layers = SimpleNamespace(stand_on=lambda _: busy == "layer", frost=None)
        settings = SimpleNamespace(spares=1, vessels=0, doored=1)
        backend: Any = SimpleNamespace(settings=settings, solos=True, layers=layers, lot=Lot())
        view: Any = None
        for case in ("box", "layer", "used", ""):
            busy = case
            template = ForkTemplate(SPEC, backend, view, view)
            process: Any = SimpleNamespace(
                is_alive=lambda: True, boxes=lambda busy=case: int(busy == "box"), kill=killed.append
            )
            template._process = process
            template.spares.refill_soon = lambda *_: None  # type: ignore[method-assign]  # nothing to make one of
            if case != "used":
                template.used_s = template.spares.demand._used_s = -1e6
            await template.tend()
        assert killed == ["nobody used it for an hour"]

    asyncio.run(scenario())


def parking(box: Callable[[], object]) -> ForkTemplate:
    """A template without a process, whose sandboxes are made so."""

    async def make_box(*_: object, **__: object) -> Any:
        return box()

    settings = SimpleNamespace(spares=1, vessels=1, doored=1)
    backend: Any = SimpleNamespace(settings=settings, solos=True, make_box=make_box, lot=Lot())
    view: Any = None
    template = ForkTemplate(SPEC, backend, view, view)
    template._process = SimpleNamespace(is_alive=lambda: True)  # type: ignore[assignment]  # no process here
    return template


def test_a_box_that_cannot_be_parked_is_ended() -> None:
    """Nobody else knows of it."""
    killed: list[str] = []

    class Box:
        async def ready(self) -> None:
            raise SandboxFailed("not this one")

        async def kill(self) -> None:
            killed.append("box")

    async def scenario() -> None:
        template = parking(Box)
        for make in (template._make_spare, template._make_vessel):
            with pytest.raises(SandboxFailed):
                await make()

    asyncio.run(scenario())

    assert killed == ["box", "box"]


@pytest.mark.parametrize(
    ("error", "goes_on"), [(NotSupported("no filters here"), False), (SandboxFailed("the supervisor is gone"), True)]
)
def test_what_can_never_be_pinned_ahead_is_tried_once(error: Exception, goes_on: bool) -> None:
    """What failed for a reason that passes is tried again; the box is ended either way."""
    killed: list[str] = []

    class Box:
        async def ready(self) -> None:
            """It is."""

        async def pin_ahead(self, kind: str) -> None:
            assert kind == "command"
            raise error

        async def kill(self) -> None:
            killed.append("box")

    async def scenario() -> bool:
        template = parking(Box)
        with pytest.raises(type(error)):
            await template._make_pinned("command")
        assert template.pinned["code"].size > 0, "what the other kind needs may be there"
        return template.pinned["command"].size > 0

    assert asyncio.run(scenario()) is goes_on
    assert killed == ["box"]


def test_a_process_that_nobody_waits_for_is_ended() -> None:
    """A client that hangs up while a template warms would leave one that nothing ever uses or ends."""
    killed: list[str] = []

    async def scenario() -> None:
        async def room() -> None:
            pass

        async def ready(_: float) -> Any:
            await asyncio.sleep(60)

        async def start(*_: object) -> Any:
            return SimpleNamespace(ready=ready, kill=killed.append, is_alive=lambda: not killed), None

        settings = SimpleNamespace(spares=1, vessels=1, doored=1)
        backend: Any = SimpleNamespace(settings=settings, solos=True, start_process=start, lot=Lot(), make_room=room)
        view: Any = None
        starting = asyncio.ensure_future(ForkTemplate(SPEC, backend, view, view).start())
        await asyncio.sleep(0.01)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(scenario())

    assert len(killed) == 1
