"""Bakes by name: the same twice is one, phases go forward, and the next node takes up what this one left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, UnknownTemplate
from hotbed.node.bakes.bakes import Bakes
from hotbed.node.bakes.journal import Entry, Journal
from hotbed.node.bakes.recipe import Recipe
from hotbed.node.templates import Templates
from hotbed.runtime.backends.fake import FakeBackend
from hotbed.runtime.base import BoxRequest
from hotbed.wire.templates import PHASES, Ready

RECIPE = Recipe(name="x", image="host", ready=Ready(cmd="true"))
SLOW = Recipe(name="x", image="host", ready=Ready(cmd="sleep 60"))
Scenario = Callable[[Bakes, Templates], Awaitable[None]]


def run(home: Path, scenario: Scenario, *, limit: int = 3) -> None:
    """A node's bakes, resumed and closed."""

    async def whole() -> None:
        backend = FakeBackend()
        await backend.start()
        templates = Templates(backend, limit=limit)
        bakes = Bakes(backend, templates, home=str(home), quota_bytes=1 << 30)
        bakes.resume()
        try:
            await scenario(bakes, templates)
        finally:
            await bakes.close()
            await backend.close()

    asyncio.run(whole())


async def finished(bakes: Bakes, name: str = "x") -> str:
    """Its last phase, once each one seen was at least as far as the one before."""
    seen = 0
    while (row := bakes.row(name)).phase not in ("Live", "Failed"):
        assert PHASES.index(row.phase) >= seen
        seen = PHASES.index(row.phase)
        await asyncio.sleep(0.005)
    return row.phase


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something."""
    while not holds():
        await asyncio.sleep(0.005)


def test_a_bake_becomes_a_template(tmp_path: Path) -> None:
    """Which can be forked, counts as wide as was asked, and is one however often it is asked for."""

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        first = bakes.start(RECIPE, width=4)
        assert bakes.start(RECIPE, width=4) is first
        assert await finished(bakes) == "Live"
        row = bakes.row("x")
        assert (row.declared, row.warm, row.image) == (4, 4, "host")
        await (await (await templates.plain("x")).fork(BoxRequest())).kill()
        with pytest.raises(InvalidRequest, match="other content"):
            bakes.start(SLOW, width=1)

    run(tmp_path, scenario)


def test_what_is_still_baked_is_asked_for_again_later(tmp_path: Path) -> None:
    """Not what nobody has heard of; and what failed is not waited for."""

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        bakes.start(SLOW, width=1)
        await until(lambda: bakes.row("x").phase == "Distributing")
        with pytest.raises(AtCapacity, match="'x' is still being baked, and is Distributing") as refused:
            await templates.plain("x")
        assert refused.value.retry_after_s
        await bakes.remove("x")
        with pytest.raises(UnknownTemplate, match="no template 'x'"):
            await templates.plain("x")
        bakes.start(replace(RECIPE, ready=Ready(cmd="exit 3")), width=1)
        assert await finished(bakes) == "Failed"
        with pytest.raises(UnknownTemplate, match="'x' could not be baked"):
            await templates.plain("x")

    run(tmp_path, scenario)


def test_a_failed_bake_says_why_and_may_be_another(tmp_path: Path) -> None:
    """Under the same name."""

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        bakes.start(replace(RECIPE, ready=Ready(cmd="exit 3")), width=1)
        assert await finished(bakes) == "Failed"
        assert "exit 3" in bakes.row("x").error and bakes.row("x").build_fails == 1 and bakes.row("x").warm == 0
        assert "x" not in templates.names
        bakes.start(RECIPE, width=1)
        assert await finished(bakes) == "Live"

    run(tmp_path, scenario)


def test_a_bake_can_be_given_up(tmp_path: Path) -> None:
    """Nothing of it goes on, and its name is free."""

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        bake = bakes.start(SLOW, width=1)
        await until(lambda: bakes.row("x").phase == "Distributing")
        await bakes.remove("x")
        assert bake.task is not None and bake.task.done() and bakes.names() == ()
        with pytest.raises(UnknownTemplate):
            await bakes.remove("x")
        bakes.start(RECIPE, width=1)
        assert await finished(bakes) == "Live"
        await bakes.remove("x")
        assert "x" not in templates.names

    run(tmp_path, scenario)
    assert Journal(str(tmp_path)).read() == []


def test_the_next_node_takes_up_what_was_under_way(tmp_path: Path) -> None:
    """And keeps what is done."""

    async def begun(bakes: Bakes, templates: Templates) -> None:
        bakes.start(SLOW, width=1)
        await until(lambda: bakes.row("x").phase == "Distributing")

    async def taken_up(bakes: Bakes, templates: Templates) -> None:
        assert bakes.row("x").phase in ("Converting", "Distributing")
        await bakes.remove("x")
        bakes.start(replace(RECIPE, name="y", env=(("A", "1"),)), width=2)
        assert await finished(bakes, "y") == "Live"

    async def kept(bakes: Bakes, templates: Templates) -> None:
        assert bakes.row("y").phase == "Live" and templates.spec("y").env == (("A", "1"),)
        assert bakes.row("y").declared == 2

    for scenario in (begun, taken_up, kept):
        run(tmp_path, scenario)


@pytest.mark.parametrize("phase", ["Pending", "Converting", "Distributing"])
def test_a_node_killed_in_any_phase_leaves_a_bake_that_ends(tmp_path: Path, phase: str) -> None:
    """Phases never go back for that."""
    Journal(str(tmp_path)).write(Entry(recipe=RECIPE, phase=phase))

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        assert PHASES.index(bakes.row("x").phase) >= PHASES.index(phase)
        assert await finished(bakes) == "Live"

    run(tmp_path, scenario)


def test_a_live_template_whose_image_went_is_baked_again(tmp_path: Path) -> None:
    """Somebody removed it meanwhile."""
    Journal(str(tmp_path)).write(Entry(recipe=RECIPE, phase="Live", image="sha256:" + "1" * 64))

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        assert await finished(bakes) == "Live" and templates.spec("x").image == "host"

    run(tmp_path, scenario)


def test_the_number_of_bakes_is_bounded(tmp_path: Path) -> None:
    """Each becomes a process."""

    async def scenario(bakes: Bakes, templates: Templates) -> None:
        bakes.start(SLOW, width=1)
        with pytest.raises(AtCapacity):
            bakes.start(replace(SLOW, name="y"), width=1)

    run(tmp_path, scenario, limit=1)


@pytest.mark.parametrize("wrong", [{"name": "\N{GREEK SMALL LETTER PI} /x"}, {"name": ""}, {"preload": ("a b",)}])
def test_what_no_template_can_be_is_refused_and_not_kept(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A failed bake whose name no address can hold broke every list that followed it by name."""

    async def scenario(bakes: Bakes, _: Templates) -> None:
        with pytest.raises(InvalidRequest, match="name"):
            bakes.start(replace(RECIPE, **wrong), width=1)
        assert bakes.names() == ()

    run(tmp_path, scenario)
