"""The templates of a node."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hotbed.errors import AtCapacity, InvalidRequest, NotSupported, TemplateFailed, UnknownTemplate
from hotbed.node.templates import Templates, spec_of
from hotbed.runtime.backends.fake import FakeBackend, FakeTemplate
from hotbed.runtime.base import TemplateSpec
from hotbed.wire.templates import CreateTemplate


class Breaking(FakeBackend):
    """Cannot warm what is called "broken"."""

    async def template(self, spec: TemplateSpec) -> FakeTemplate:
        """The template, or not."""
        if spec.name == "broken":
            raise TemplateFailed("no module named nope")
        return await super().template(spec)


def test_an_unknown_template_says_which_there_are() -> None:
    """A typing mistake is the usual reason."""
    with pytest.raises(UnknownTemplate, match="python-numpy"):
        Templates(FakeBackend(), limit=4).spec("pyton")


def test_a_template_is_pending_until_it_has_been_warmed() -> None:
    """Listing must not start twenty interpreters."""

    async def scenario() -> list[str]:
        templates = Templates(FakeBackend(), limit=4)
        before = templates.row("python")
        await templates.plain("python")
        after = templates.row("python")
        assert after.digest
        assert (before.visibility, before.image) == ("public", "host")
        return [before.phase, after.phase]

    assert asyncio.run(scenario()) == ["Pending", "Live"]


def test_the_same_name_twice_must_mean_the_same() -> None:
    """Else one trainer would change what another one runs in."""

    async def scenario() -> None:
        templates = Templates(FakeBackend(), limit=4)
        request = CreateTemplate(name="mine", env={"A": "b"}, limits={"pids": 9.0})
        row = await templates.create(request)
        assert (row.phase, row.visibility, row.limits["pids"]) == ("Live", "private", 9)
        assert await templates.create(request) == row
        with pytest.raises(InvalidRequest, match="other content"):
            await templates.create(CreateTemplate(name="mine"))

    asyncio.run(scenario())


def test_a_template_that_cannot_be_made_is_not_kept() -> None:
    """The next attempt may mend it under the same name."""

    async def scenario() -> None:
        templates = Templates(Breaking(), limit=4)
        with pytest.raises(TemplateFailed):
            await templates.create(CreateTemplate(name="broken"))
        assert "broken" not in templates.names

    asyncio.run(scenario())


def test_a_built_in_template_that_fails_says_so_in_its_row() -> None:
    """It stays listed, for it may work again."""

    async def scenario() -> None:
        templates = Templates(Breaking(), limit=4, built_in=(TemplateSpec(name="broken"),))
        with pytest.raises(TemplateFailed):
            await templates.plain("broken")
        assert (templates.rows()[0].phase, templates.rows()[0].error) == ("Failed", "no module named nope")

    asyncio.run(scenario())


def test_the_number_of_templates_is_bounded() -> None:
    """Each is a process with its memory."""

    async def scenario() -> None:
        templates = Templates(FakeBackend(), limit=0)
        with pytest.raises(AtCapacity):
            templates.check_new("one-too-many")
        with pytest.raises(AtCapacity):
            await templates.create(CreateTemplate(name="one-too-many"))

    asyncio.run(scenario())


@pytest.mark.parametrize("wrong", [{"name": "No"}, {"preload": ("a b",)}, {"env": {"": "x"}}, {"limits": {"pids": 0}}])
def test_a_template_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    """Before an interpreter is started for it."""
    with pytest.raises(InvalidRequest):
        spec_of(CreateTemplate(**{"name": "mine", **wrong}))


def test_a_plain_template_has_no_guest_programs_and_else_is_the_same() -> None:
    async def claim() -> None:
        templates = Templates(FakeBackend(), limit=4)
        plain, full = await templates.plain("python"), await templates.warm("python")

        assert plain.spec == replace(full.spec, programs=())
        assert full.spec.programs == ("candidate", "judge")
        assert templates.row("python").digest == plain.digest

    asyncio.run(claim())


def test_only_what_was_created_can_be_removed() -> None:
    """And what was removed is unknown, and may be made again as another."""

    async def scenario() -> None:
        backend = FakeBackend()
        templates = Templates(backend, limit=4)
        await templates.create(CreateTemplate(name="mine", env={"A": "b"}))
        await templates.remove("mine")
        with pytest.raises(UnknownTemplate):
            templates.spec("mine")
        await templates.create(CreateTemplate(name="mine"))
        with pytest.raises(NotSupported, match="built in"):
            await templates.remove("python")
        await backend.close()

    asyncio.run(scenario())


def test_a_baked_template_is_kept_and_forgotten() -> None:
    """Under its name, until it is removed."""

    async def scenario() -> None:
        templates = Templates(FakeBackend(), limit=4)
        spec = TemplateSpec(name="baked", env=(("A", "b"),))
        templates.adopt(spec)
        assert spec in templates.specs() and templates.spec("baked") == spec
        with pytest.raises(InvalidRequest, match="other content"):
            templates.check_new("baked")
        await templates.remove("baked")
        assert "baked" not in templates.names

    asyncio.run(scenario())


def test_each_template_of_the_catalog_is_described() -> None:
    """In a line that says what it is."""
    templates = Templates(FakeBackend(), limit=4)

    assert all(templates.describe(name) != "made here" for name in templates.built_in)
